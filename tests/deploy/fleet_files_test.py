#!/usr/bin/env python3
"""The chart for Kubernetes and the Compose file: that they can be read, hold against the schemas of
those who read them, and say nothing that collectord does not take. No cluster and no container runs
here; what a pod would run, runs here as its user. Usage: fleet_files_test.py SOURCE_DIR BUILD_DIR"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest

try:
    import jsonschema
    import yaml
except ModuleNotFoundError as error:
    print(f"skipped: {error}; apt install python3-yaml python3-jsonschema")
    sys.exit(77)

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:1]
HERE = os.path.dirname(os.path.abspath(__file__))
CHART = os.path.join(SOURCE, "deploy/helm/collectord")
COLLECTORD = os.path.join(BUILD, "bin/collectord")
COLLECTCTL = os.path.join(BUILD, "bin/collectctl")
GO_PATH = "/usr/share/gocode"
POD_USER = 10001
LEAST = {"tls": {"secret": "certificates"}, "tokens": {"secret": "tokens"}}
ALL = {
    "replicas": 3,
    "tls": {"secret": "certificates", "requireClientCertificate": True, "serverName": "fleet"},
    "tokens": {"secret": "tokens"},
    "fleet": {"database": "postgresql://collect@db/fleet?sslmode=verify-full", "passwordSecret": "db"},
    "store": {"url": "s3://traces", "endpoint": "https://store.lab:9000", "region": "lab",
              "keepLocal": "until_committed", "secret": "store"},
    "external": {"enabled": True, "type": "NodePort", "annotations": {"a": "b"}},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "persistence": {"storageClassName": "fast", "size": "1Ti"},
    "settings": {"symbol_directories": ["/symbols", "/a \"b\""], "max_session_bytes": 4294967296,
                 "rtc": False, "resume_ms": 1000},
    "podDisruptionBudget": {"maxUnavailable": "50%"}, "priorityClassName": "high",
    "podAnnotations": {"c": "d"}, "nodeSelector": {"disk": "fast"}, "imagePullSecrets": [{"name": "pull"}],
    "tolerations": [{"key": "lab", "operator": "Exists"}], "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                                   "whenUnsatisfiable": "DoNotSchedule"}]}


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def effective_settings(arguments):
    """Of a collectord with these arguments, or None and what it says."""
    ran = subprocess.run([COLLECTORD, *arguments, "--print-config"], capture_output=True, text=True,
                         check=False)
    return (tomllib.loads(ran.stdout), "") if ran.returncode == 0 else (None, ran.stderr)


def faults_of(values):
    schema = json.loads(read("deploy/helm/collectord/values.schema.json"))
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(values)]


def merged(under, over):
    return {**under, **{key: merged(under[key], value) if isinstance(value, dict) and
                        isinstance(under.get(key), dict) else value for key, value in over.items()}}


class Compose(unittest.TestCase):
    def setUp(self):
        self.text = read("deploy/compose.yaml")
        self.services = yaml.safe_load(self.text)["services"]
        self.collectors = {name: one for name, one in self.services.items() if "command" in one}

    def test_collectors_take_their_flags(self):
        self.assertEqual(len(self.collectors), 2)
        for name, one in self.collectors.items():
            settings, fault = effective_settings(one["command"])
            self.assertIsNotNone(settings, fault)
            self.assertEqual(settings["fleet_address"], one["hostname"] + ":7711")
            self.assertEqual(one["hostname"], name)
            inside = {address.rpartition(":")[2]
                      for address in (settings["ingest"], settings["control"], settings["metrics"])}
            self.assertEqual({port.split(":")[-1] for port in one["ports"]}, inside)
            # Which ones everybody may reach needs what makes that safe.
            for key in ("tls_certificate", "tls_key", "token_file", "control_token_file"):
                self.assertTrue(settings[key].startswith("/certs/"), key)
            self.assertIn("@database/", settings["fleet_database"])

    def test_ports_and_folders_of_two_are_two(self):
        published = [port.rpartition(":")[0] for one in self.collectors.values() for port in one["ports"]]
        self.assertEqual(len(published), len(set(published)))
        folders = [one["volumes"][0].split(":") for one in self.collectors.values()]
        self.assertEqual({inside for _, inside in folders}, {"/var/lib/collectord"})
        self.assertEqual(len({outside for outside, _ in folders}), 2)
        for outside, _ in folders:
            self.assertIn("mkdir -p", self.text)
            self.assertIn(outside.removeprefix("./"), self.text.split("name: collectord")[0])

    def test_names_only_things_that_exist(self):
        whole = yaml.safe_load(self.text)
        for one in self.services.values():
            for needed in one.get("depends_on", {}):
                self.assertIn(needed, self.services)
                self.assertIn("healthcheck", self.services[needed])
            if "build" in one:
                self.assertTrue(os.path.exists(os.path.join(SOURCE, one["build"]["dockerfile"])))
            for volume in one["volumes"]:
                outside = volume.split(":")[0]
                self.assertTrue(outside.startswith("./") or outside in whole["volumes"], volume)
        # Each variable that must be set is explained where it is used.
        for variable in re.findall(r"\$\{(\w+):\?[^}]*first lines of this file", self.text):
            self.assertIn("export " if variable == "COLLECT_USER" else variable,
                          self.text.split("name: collectord")[0])
        self.assertNotRegex(self.text, r"\$\{\w+\}")


class Values(unittest.TestCase):
    def test_the_chart_is_one(self):
        chart = yaml.safe_load(read("deploy/helm/collectord/Chart.yaml"))
        self.assertEqual(chart["apiVersion"], "v2")
        version = re.search(r"project\(collectord VERSION ([\d.]+)|project\(\w+\s+VERSION ([\d.]+)",
                            read("CMakeLists.txt"))
        self.assertEqual(chart["appVersion"], version[1] or version[2])

    def test_defaults_and_examples_hold_against_the_schema(self):
        defaults = yaml.safe_load(read("deploy/helm/collectord/values.yaml"))
        for values in ({}, LEAST, ALL):
            self.assertEqual(faults_of(merged(defaults, values)), [])

    def test_the_schema_refuses_what_would_not_work(self):
        defaults = yaml.safe_load(read("deploy/helm/collectord/values.yaml"))
        for values in ({"replica": 2}, {"replicas": 0}, {"tls": {"secrets": "x"}},
                       {"settings": {"resume_ms": 1.5}}, {"settings": {"rtc": None}},
                       {"fleet": {"database": "postgresql://me:secret@db/fleet"}},
                       {"fleet": {"database": "db"}}, {"store": {"url": "s3://bucket/below"}},
                       {"store": {"keepLocal": "2 weeks"}}, {"external": {"type": "ClusterIP"}},
                       {"terminationGracePeriodSeconds": 5}):
            self.assertNotEqual(faults_of(merged(defaults, values)), [], values)

    def test_default_settings_are_settings(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            for key, value in yaml.safe_load(read("deploy/helm/collectord/values.yaml"))["settings"].items():
                file.write(f"{key} = {json.dumps(value)}\n")
            file.flush()
            settings, fault = effective_settings(["--config", file.name])
        self.assertIsNotNone(settings, fault)


class Rendered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("go") is None or not os.path.isdir(GO_PATH + "/src/github.com/Masterminds/sprig"):
            raise unittest.SkipTest("the chart is not rendered: apt install golang-go "
                                    "golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev")
        cls.folder = tempfile.mkdtemp()
        cls.renderer = os.path.join(cls.folder, "render")
        subprocess.run(["go", "build", "-o", cls.renderer, os.path.join(HERE, "chart/render.go")], check=True,
                       env={**os.environ, "GO111MODULE": "off", "GOPATH": GO_PATH,
                            "GOCACHE": os.path.join(BUILD, "go_cache"), "GOFLAGS": ""})
        cls.least, cls.all = cls.render(LEAST), cls.render(ALL)

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "folder"):
            shutil.rmtree(cls.folder)

    @classmethod
    def run_renderer(cls, values):
        path = os.path.join(cls.folder, "values.yaml")
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(values, file)
        return subprocess.run([cls.renderer, CHART, path], capture_output=True, text=True, check=False)

    @classmethod
    def render(cls, values):
        ran = cls.run_renderer(values)
        if ran.returncode != 0:
            raise AssertionError(ran.stderr)
        return [one for one in yaml.safe_load_all(ran.stdout) if one is not None]

    @staticmethod
    def kind(objects, kind):
        return [one for one in objects if one["kind"] == kind]

    def settings_of(self, objects):
        text = self.kind(objects, "ConfigMap")[0]["data"]["collectord.toml"]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            settings, fault = effective_settings(["--config", file.name])
        self.assertIsNotNone(settings, fault + text)
        return settings

    def container(self, objects):
        pod = self.kind(objects, "StatefulSet")[0]["spec"]["template"]["spec"]
        return pod, pod["containers"][0]

    def test_objects_hold_against_the_types_of_kubernetes(self):
        for objects in (self.least, self.all):
            core = [one for one in objects if one["kind"] != "ServiceMonitor"]  # of an extension
            ran = subprocess.run(["/usr/bin/python3", "-B", os.path.join(HERE, "chart/check_objects.py")],
                                 input=json.dumps(core), capture_output=True, text=True, check=False)
            if ran.returncode == 77:
                self.skipTest("apt install python3-kubernetes")
            self.assertEqual((ran.stdout.strip(), ran.stderr), ("", ""))

    def test_collectord_takes_the_settings(self):
        settings = self.settings_of(self.least)
        self.assertEqual(settings["durability"], "fsync")
        self.assertEqual(settings["fleet_database"], "")
        self.assertEqual(settings["tls_client_ca"], "")
        self.assertEqual((settings["store"], settings["keep_local"]), ("off", "always"))
        settings = self.settings_of(self.all)
        store = ALL["store"]
        for key, value in {**ALL["settings"], "store": store["url"], "store_endpoint": store["endpoint"],
                           "store_region": store["region"], "keep_local": store["keepLocal"], "fleet_database": ALL["fleet"]["database"],
                           "tls_client_ca": "/etc/collectord/tls/ca.crt"}.items():
            self.assertEqual(settings[key], value, key)

    def test_runs_with_existing_flags_and_mounts(self):
        for objects in (self.least, self.all):
            pod, container = self.container(objects)
            self.assertEqual(container["command"][0], "collectord")
            address = container["command"][-1]
            for name in ("POD_NAME", "POD_NAMESPACE"):
                address = address.replace(f"$({name})", name.lower().replace("_", "-"))
            settings, fault = effective_settings(
                [word for word in container["command"][1:-1] if not word.startswith("--config")] + [address])
            self.assertIsNotNone(settings, fault)
            volumes = {one["name"] for one in pod["volumes"]} | {"sessions"}
            self.assertEqual({one["name"] for one in container["volumeMounts"]}, volumes)
            mounts = [one["mountPath"] for one in container["volumeMounts"]]
            toml = tomllib.loads(self.kind(objects, "ConfigMap")[0]["data"]["collectord.toml"])
            named = [value for value in toml.values() if str(value).startswith("/etc/")]
            named += [one["value"] for one in container["env"] if one.get("value", "").startswith("/etc/")]
            self.assertGreaterEqual(len(named), 6)
            for path in named:
                self.assertTrue(any(path.startswith(mount + "/") for mount in mounts), path)
            ports = {one["name"]: one["containerPort"] for one in container["ports"]}
            for key, port in ports.items():
                self.assertEqual(toml[key], f"0.0.0.0:{port}")
            for service in self.kind(objects, "Service"):
                for port in service["spec"]["ports"]:
                    self.assertEqual(port["port"], ports[port["targetPort"]])

    def test_everything_is_selected_by_what_it_is_labelled_with(self):
        for objects in (self.least, self.all):
            labels = self.kind(objects, "StatefulSet")[0]["spec"]["template"]["metadata"]["labels"]
            selectors = [one["spec"]["selector"] for one in objects if "selector" in one.get("spec", {})]
            self.assertGreaterEqual(len(selectors), 4)
            for selector in selectors:
                for key, value in selector.get("matchLabels", selector).items():
                    if key == "statefulset.kubernetes.io/pod-name":
                        self.assertRegex(value, r"^lab-collectord-[0-2]$")
                    else:
                        self.assertEqual(labels[key], value)
        self.assertEqual(len(self.kind(self.all, "Service")), 2 + 3)
        names = [(one["kind"], one["metadata"]["name"]) for one in self.all]
        self.assertEqual(len(names), len(set(names)))

    def test_a_change_of_settings_is_a_change_of_the_pods(self):
        def annotation(objects):
            return self.kind(objects, "StatefulSet")[0]["spec"]["template"]["metadata"]["annotations"]
        other = self.render({**LEAST, "settings": {"resume_ms": 1}})
        self.assertNotEqual(annotation(other), annotation(self.least))

    def test_refuses_unusable_values_with_the_way_out(self):
        for values, words in (({}, "tls.secret"), ({"tls": {"secret": "x"}}, "tokens.secret"),
                              ({**LEAST, "settings": {"ingest": "127.0.0.1:1"}}, "settings.ingest"),
                              ({**LEAST, "settings": {"root": "/x"}}, "settings.root"),
                              ({**LEAST, "settings": {"store": "s3://x"}}, "settings.store")):
            ran = self.run_renderer(values)
            self.assertNotEqual(ran.returncode, 0, values)
            self.assertIn(words, ran.stderr)

    def test_a_pods_command_runs_as_its_user_and_the_probe_finds_it(self):
        """With the rendered settings; only folders and ports are others."""
        if os.getuid() != 0:
            self.skipTest("becoming the pod's user takes root")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            pod, container = self.container(self.least)
            self.assertEqual(pod["securityContext"]["runAsUser"], POD_USER)
            subprocess.run([os.path.join(SOURCE, "deploy/make-certificates.sh"), folder + "/made", "server",
                            "pod-0.lab-collectord-pods.traces.svc"], check=True, capture_output=True)
            for part in ("tls", "tokens", "root", "bin"):
                os.mkdir(os.path.join(folder, part))
            os.chown(folder + "/root", POD_USER, POD_USER)
            for made, name in (("ca.pem", "ca.crt"), ("server.pem", "tls.crt"), ("server.key", "tls.key")):
                shutil.copy(os.path.join(folder, "made", made), os.path.join(folder, "tls", name))
            for name in ("token", "control_token"):
                with open(os.path.join(folder, "tokens", name), "w", encoding="utf-8") as file:
                    file.write("0123456789abcdef\n")
            for path in ("tls/tls.key", "tokens/token", "tokens/control_token"):
                os.chmod(os.path.join(folder, path), 0o440)
                os.chown(os.path.join(folder, path), 0, POD_USER)
            for program in (COLLECTORD, COLLECTCTL):  # the tree may be closed for others
                shutil.copy(program, folder + "/bin")

            def local(text):
                text = text.replace("/etc/collectord", folder).replace("/var/lib/collectord", folder + "/root")
                text = text.replace("$(POD_NAME)", "pod-0").replace("$(POD_NAMESPACE)", "traces")
                return re.sub(r"0\.0\.0\.0:\d+", "0.0.0.0:0", text)

            with open(folder + "/collectord.toml", "w", encoding="utf-8") as file:
                file.write(local(self.kind(self.least, "ConfigMap")[0]["data"]["collectord.toml"]))
            environment = {one["name"]: local(one["value"]) for one in container["env"] if "value" in one}
            user = {"user": POD_USER, "group": POD_USER, "extra_groups": [], "cwd": "/"}
            reading, writing = os.pipe()
            collector = subprocess.Popen(
                [local(word) for word in container["command"]] + ["--ready-fd", str(writing)],
                executable=folder + "/bin/collectord", pass_fds=[writing], stderr=subprocess.PIPE, text=True,
                env={"PATH": os.environ["PATH"]}, **user)
            os.close(writing)
            try:
                with os.fdopen(reading) as file:
                    line = file.readline()
                self.assertNotEqual(line, "", "it did not start")
                environment["COLLECT_CONTROL"] = re.sub(r".*:", "127.0.0.1:", json.loads(line)["control"])
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    command = container[probe]["exec"]["command"]
                    self.assertEqual(command[0], "collectctl")
                    ran = subprocess.run(command, executable=folder + "/bin/collectctl", env=environment,
                                         capture_output=True, text=True, check=False, **user)
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                # And without the token it is no success.
                del environment["COLLECT_CONTROL_TOKEN_FILE"]
                ran = subprocess.run(["collectctl", "stats"], executable=folder + "/bin/collectctl",
                                     env=environment, capture_output=True, text=True, check=False, **user)
                self.assertEqual(ran.returncode, 1)
            finally:
                collector.send_signal(signal.SIGTERM)
                errors = collector.communicate(timeout=60)[1]
            self.assertEqual(collector.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
