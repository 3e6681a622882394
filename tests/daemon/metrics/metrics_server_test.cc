#include "daemon/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/web/http_client.h"

namespace collect::metrics {
namespace {

using ::testing::HasSubstr;

class MetricsTest : public ::testing::Test {
 protected:
  static uint16_t port_of(const std::string& url) { return web::parse_url(url + "/#token=").port; }
  std::string scraped(const std::string& url) {
    web::HttpClient client(port_of(url));
    EXPECT_TRUE(client.send("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    const web::ReceivedAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.fields.at("content-type"), HasSubstr("text/plain"));
    return answer.body;
  }
  // Values by metric, labels included, as the exposition format has them: `name{label="x"} 1`.
  static std::map<std::string, double> values_of(const std::string& text) {
    std::map<std::string, double> values;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      const size_t space = line.rfind(' ');
      values[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
    return values;
  }

  control::FakeCollector collector_;
};

TEST_F(MetricsTest, ServesTheCollectorsCounters) {
  const auto server = MetricsServer::start("127.0.0.1:0", collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  const std::string text = scraped((*server)->url());
  const auto values = values_of(text);
  EXPECT_EQ(values.at("collectord_stored_events_total"), 123);
  EXPECT_EQ(values.at("collectord_build_info{version=\"fake\"}"), 1);
  EXPECT_EQ(values.at("collectord_connections_total{result=\"accepted\"}"), 0);
  EXPECT_EQ(values.at("collectord_connections_total{result=\"refused\"}"), 0);
  EXPECT_GT(values.at("process_open_fds"), 3);
  EXPECT_LT(values.at("process_open_fds"), values.at("process_max_fds"));
  // Rules of names: counters end with _total, nothing else does, and each has help and a type.
  std::set<std::string> names;
  const std::regex type("# TYPE ([a-z_]+) (counter|gauge)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), type); at != std::sregex_iterator();
       ++at) {
    const std::string name = (*at)[1];
    names.insert(name);
    EXPECT_EQ(name.ends_with("_total"), (*at)[2] == "counter") << name;
    EXPECT_THAT(text, HasSubstr("# HELP " + name + " "));
  }
  for (const auto& [metric, value] : values) {
    if (metric.starts_with("exposer_")) continue;  // the library's own
    EXPECT_TRUE(names.contains(metric.substr(0, metric.find('{')))) << metric;
  }
}

// Two clients have both threads; the third is answered when their time is over.
TEST_F(MetricsTest, SilentClientsDoNotDelayOthers) {
  const auto server = MetricsServer::start("127.0.0.1:0", collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  const uint16_t port = port_of((*server)->url());
  web::HttpClient silent(port);
  web::HttpClient half(port);
  EXPECT_TRUE(half.send("GET /metrics HTTP/1.1\r\nHost: x\r\n"));
  EXPECT_THAT(scraped((*server)->url()), HasSubstr("collectord_stored_events_total 123"));
}

// Any request that is none is an error of that connection alone.
TEST_F(MetricsTest, RequestsThatAreNone) {
  const auto server = MetricsServer::start("127.0.0.1:0", collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  const uint16_t port = port_of((*server)->url());
  const std::string huge(1 << 20, 'x');
  for (const std::string& request :
       {"GET /" + huge + " HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + huge + "\r\n\r\n",
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n" + huge,
        std::string("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("GET /metrics HTTP/9.9\r\n\r\n"), std::string(4096, '\0'),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)}) {
    web::HttpClient client(port);
    (void)client.send(request);  // a server that has had enough closes before all is sent
  }
  web::HttpClient client(port);
  EXPECT_TRUE(
      client.send("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const web::ReceivedAnswer refused = client.read_answer();
  EXPECT_NE(refused.status, 200);
  EXPECT_EQ(refused.body.find("root:"), std::string::npos);
  EXPECT_THAT(scraped((*server)->url()), HasSubstr("collectord_stored_events_total 123"));
}

// The dashboard asks for nothing that is not there.
TEST_F(MetricsTest, DashboardKnowsThemAndNothingListensBehindTheEnd) {
  auto server = MetricsServer::start("127.0.0.1:0", collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  const std::string url = (*server)->url();
  const std::string text = scraped(url);
  std::ifstream file(DASHBOARD);
  const auto dashboard = nlohmann::json::parse(file);
  size_t asked = 0;
  for (const auto& panel : dashboard.at("panels")) {
    for (const auto& target : panel.at("targets")) {
      const std::string query = target.at("expr");
      const std::regex metric("(collectord|process)_[a-z_]+");
      for (auto at = std::sregex_iterator(query.begin(), query.end(), metric);
           at != std::sregex_iterator(); ++at) {
        ++asked;
        EXPECT_THAT(text, HasSubstr("# TYPE " + at->str() + " ")) << panel.at("title");
      }
    }
  }
  EXPECT_GE(asked, 10u);

  const std::string taken = "127.0.0.1:" + std::to_string(port_of(url));
  const auto second = MetricsServer::start(taken, collector_);
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr(taken));
  server->reset();
  web::HttpClient client(port_of(url));
  EXPECT_TRUE(!client.send("GET /metrics HTTP/1.1\r\n\r\n") || client.read_answer().status == 0);
}

TEST_F(MetricsTest, AddressesThatCannotBe) {
  EXPECT_EQ(MetricsServer::start("unix:/x", collector_).code(), Code::kInvalidArgument);
  EXPECT_EQ(MetricsServer::start("nonsense", collector_).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace collect::metrics
