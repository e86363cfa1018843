#!/usr/bin/env python3
"""Sets a plain text as a PDF: `~` alone on a line begins a page. The result is plain ASCII, uncompressed, so
that it can be read and compared like any other source. Usage: make_pdf.py < text > file.pdf"""
import sys
import textwrap

WIDTH, SIZE, LEAD, TOP, LEFT = 84, 11, 15, 770, 64


def escape(text):
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def page(text):
    lines = []
    for paragraph in text.strip().split("\n"):
        lines += textwrap.wrap(paragraph, WIDTH) or [""]
    shown = "\n".join(f"({escape(line)}) Tj T*" for line in lines)
    return f"BT /F1 {SIZE} Tf {LEAD} TL {LEFT} {TOP} Td\n{shown}\nET"


pages = [page(part) for part in sys.stdin.read().split("\n~\n")]
kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
]
for n, content in enumerate(pages):
    objects.append(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
        f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R >>"
    )
    objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
out, places = "%PDF-1.4\n", []
for number, body in enumerate(objects, 1):
    places.append(len(out))
    out += f"{number} 0 obj\n{body}\nendobj\n"
table = len(out)
out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
out += "".join(f"{place:010d} 00000 n \n" for place in places)
out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
sys.stdout.write(out)
