#!/usr/bin/env python3
"""Writes demo/timezones.ttl from the IANA time zone database as Debian installs it.

Source: the tz database (iso3166.tab, zone1970.tab and the compiled zones), which its authors placed in
the public domain. Run only to renew the dataset; the result is checked in.
"""
import datetime
import re
import sys
import urllib.parse
import zoneinfo

BASE = "/usr/share/zoneinfo"
EX = "https://data.example.org/tz/"


def rows(name):
    with open(f"{BASE}/{name}", encoding="utf-8") as table:
        for line in table:
            if not line.startswith("#") and line.strip():
                yield line.rstrip("\n").split("\t")


def text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def degrees(part):
    sign = -1 if part[0] == "-" else 1
    digits = part[1:]
    seconds = 0
    if len(digits) in (6, 7):
        seconds = int(digits[-2:])
        digits = digits[:-2]
    return round(sign * (int(digits[:-2]) + int(digits[-2:]) / 60 + seconds / 3600), 4)


def offset(zone, when):
    delta = when.replace(tzinfo=zone).utcoffset()
    minutes = int(delta.total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def main(out):
    year = 2026
    winter, summer = datetime.datetime(year, 1, 15), datetime.datetime(year, 7, 15)
    print("# Time zones of the world as RDF. Source: IANA tz database (public domain).", file=out)
    print(f"@prefix tz: <{EX}ns#> .", file=out)
    print("@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .", file=out)
    print("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .", file=out)
    print("@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n", file=out)
    properties = {
        "countryCode": "country code", "coversCountry": "covers country", "latitude": "latitude",
        "longitude": "longitude", "standardOffset": "standard UTC offset",
        "summerOffset": "summer UTC offset", "observesDaylightSaving": "observes daylight saving",
        "coverage": "coverage",
    }
    for name, label in properties.items():
        print(f"tz:{name} rdfs:label {text(label)} .", file=out)
    print('tz:Country rdfs:label "Country" .\ntz:TimeZone rdfs:label "Time zone" .\n', file=out)
    for code, name in rows("iso3166.tab"):
        print(f"<{EX}country/{code}> a tz:Country ; rdfs:label {text(name)} ; tz:countryCode {text(code)} .", file=out)
    print(file=out)
    for row in rows("zone1970.tab"):
        codes, position, name = row[:3]
        comment = row[3] if len(row) > 3 else ""
        latitude, longitude = re.match(r"([+-]\d+)([+-]\d+)", position).groups()
        zone = zoneinfo.ZoneInfo(name)
        january, july = offset(zone, winter), offset(zone, summer)
        dst = january != july
        january_is_dst = bool(winter.replace(tzinfo=zone).dst())
        standard, other = (july, january) if january_is_dst else (january, july)
        city = name.split("/")[-1].replace("_", " ")
        lines = [
            "a tz:TimeZone",
            f"rdfs:label {text(name)}",
            f"skos:altLabel {text(city)}",
            f'tz:latitude "{degrees(latitude)}"^^xsd:decimal',
            f'tz:longitude "{degrees(longitude)}"^^xsd:decimal',
            f"tz:standardOffset {text(standard)}",
            f'tz:observesDaylightSaving "{str(dst).lower()}"^^xsd:boolean',
        ]
        if dst:
            lines.append(f"tz:summerOffset {text(other)}")
        if comment:
            lines.append(f"tz:coverage {text(comment)}")
        for code in codes.split(","):
            lines.append(f"tz:coversCountry <{EX}country/{code}>")
        print(f"<{EX}zone/{urllib.parse.quote(name)}>\n    " + " ;\n    ".join(lines) + " .", file=out)


if __name__ == "__main__":
    with open(sys.argv[1] if len(sys.argv) > 1 else "demo/timezones.ttl", "w", encoding="utf-8") as target:
        main(target)
