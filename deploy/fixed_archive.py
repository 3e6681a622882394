"""An archive whose bytes depend on what is in it alone: names in order, one time, no owner.

The time is SOURCE_DATE_EPOCH, else the first that a zip file can say. Zip files are not compressed, so
that they do not depend on the version of zlib; what unpacks an AAR or an XCFramework does not care.
"""

import gzip
import io
import os
import tarfile
import time
import zipfile

FIRST_OF_ZIP = 315532800  # 1980-01-01


def fixed_time():
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_OF_ZIP)), FIRST_OF_ZIP)


def files_below(folder):
    """Names relative to `folder`, with slashes, in order."""
    names = [os.path.relpath(os.path.join(place, leaf), folder)
             for place, _, leaves in os.walk(folder) for leaf in leaves]
    return sorted(name.replace(os.sep, "/") for name in names)


def mode_of(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def zip_bytes(members):
    """A zip file of (name, bytes, mode) in this order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name, time.gmtime(fixed_time())[:6])
            info.create_system = 3  # Unix, whose modes these are
            info.external_attr = (0o100000 | mode) << 16
            archive.writestr(info, content)
    return out.getvalue()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def zip_folder(folder, prefix=""):
    """A zip file of all that is below a folder, in a folder `prefix`, if one is named."""
    paths = [(name, os.path.join(folder, name)) for name in files_below(folder)]
    return zip_bytes([(os.path.join(prefix, name), read(path), mode_of(path)) for name, path in paths])


def tar_folder(folder, prefix):
    """A .tar.gz of all that is below a folder, in a folder `prefix`."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name in files_below(folder):
                path = os.path.join(folder, name)
                content = read(path)
                info = tarfile.TarInfo(prefix + "/" + name)
                info.size = len(content)
                info.mode = mode_of(path)
                info.mtime = fixed_time()
                info.uname = info.gname = "root"
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
