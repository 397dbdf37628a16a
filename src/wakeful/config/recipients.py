"""Recipients of backups: the public keys of age, in Bech32."""

import re
from collections.abc import Sequence
from datetime import timedelta

from wakeful.core.errors import Invalid


class BadRecipient(Invalid):
    code = "bad_recipient"


def parse_recipient(text: str) -> bytes:
    """Return the public key of a recipient."""
    public = from_bech32("age", text)
    if public is None:
        raise BadRecipient(
            f"{text!r} is not an age recipient: it begins with age1 and has 62 characters. `wakeful backup key` makes "
            "one, and so does age-keygen. Recipients of SSH keys and plugins are not supported."
        )
    return public


_LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def _polymod(values: Sequence[int]) -> int:
    generator = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, number in enumerate(generator):
            check ^= number if (top >> place) & 1 else 0
    return check


def _expand(prefix: str) -> list[int]:
    return [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]


def _regroup(values: Sequence[int], from_bits: int, to_bits: int, *, pads: bool) -> list[int] | None:
    kept, bits, grouped = 0, 0, list[int]()
    for value in values:
        kept = kept << from_bits | value
        bits += from_bits
        while bits >= to_bits:
            bits -= to_bits
            grouped.append(kept >> bits & (1 << to_bits) - 1)
    if pads and bits:
        grouped.append(kept << to_bits - bits & (1 << to_bits) - 1)
    elif not pads and (bits >= from_bits or kept & (1 << bits) - 1):
        return None
    return grouped


def to_bech32(prefix: str, data: bytes) -> str:
    """Return bytes in letters, with a checksum."""
    values = _regroup(data, 8, 5, pads=True) or []
    check = _polymod([*_expand(prefix), *values, *[0] * 6]) ^ 1
    values += [check >> 5 * (5 - place) & 31 for place in range(6)]
    return f"{prefix}1" + "".join(_LETTERS[value] for value in values)


def from_bech32(prefix: str, text: str) -> bytes | None:
    """Return the 32 bytes of a key, or None if it is not one."""
    if text not in (text.lower(), text.upper()):
        return None
    found, _, letters = text.lower().rpartition("1")
    if found != prefix or any(letter not in _LETTERS for letter in letters) or len(letters) < 7:
        return None
    values = [_LETTERS.index(letter) for letter in letters]
    if _polymod([*_expand(prefix), *values]) != 1:
        return None
    data = _regroup(values[:-6], 5, 8, pads=False)
    return bytes(data) if data is not None and len(data) == 32 else None


_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def parse_every(text: str) -> timedelta:
    """Return an interval such as 30m, 6h or 1d."""
    found = re.fullmatch(r"(\d{1,4})([mhd])", text.strip())
    every = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not timedelta(minutes=15) <= every <= timedelta(days=90):
        raise ValueError("not an interval from 15m to 90d")
    return every
