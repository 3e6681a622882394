"""The checksums of the formats that the standard library does not have, in table form."""


def _table(polynomial, reflected):
    table = []
    for n in range(256):
        value = n if reflected else n << 24
        for _ in range(8):
            if reflected:
                value = (value >> 1) ^ (polynomial if value & 1 else 0)
            else:
                value = ((value << 1) ^ (polynomial if value & 0x80000000 else 0)) & 0xFFFFFFFF
        table.append(value)
    return table


def _run(table, data):
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


_CASTAGNOLI = _table(0x82F63B78, reflected=True)
# The published RTC writer takes the table of the unreflected polynomial with the reflected update.
_PUBLISHED_RTC = _table(0x04C11DB7, reflected=False)


def crc32c(data):
    return _run(_CASTAGNOLI, data)


def published_rtc(data):
    return _run(_PUBLISHED_RTC, data)


# Published check values.
assert crc32c(b"123456789") == 0xE3069283
assert published_rtc(b"123456789") == 0x7EAD5C77
