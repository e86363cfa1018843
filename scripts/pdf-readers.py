#!/usr/bin/env python3
"""Reads the papers of tg-ingest with Pdfium, pdf_oxide and our reader, and prints of each paper how many words of its source each finds,
how many of them in the order of the source (longest common subsequence), and how long the reading takes.

  TG_PAPERS=/tmp/papers cargo test -p tg-ingest --test pdfs words_and_order     # writes NAME.pdf and NAME.txt, the source
  pip install --target /tmp/readers pypdfium2 pdf-oxide
  PYTHONPATH=/tmp/readers scripts/pdf-readers.py /tmp/papers target/dist/ingest-decode

Without its last argument ours is left out. Ours is a process for each file, and its time is that of the process."""

import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pdf_oxide
import pypdfium2

ROUNDS = 5
# Signs that stand for the same: ligatures, and ends of lines. Pdfium has a sign of its own for a hyphen with the end of its line.
SAME = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\r\n": "\n", "\ufffe": "", "\x02": "", "\u00ad": "-"}


def pdfium(path):
    with pypdfium2.PdfDocument(path) as paper:
        return "\n".join(page.get_textpage().get_text_range() for page in paper)


def oxide(path):
    paper = pdf_oxide.PdfDocument(str(path))
    return "\n".join(paper.extract_text(page) for page in range(paper.page_count()))


def ours(program):
    def read(path):
        said = subprocess.run([program, "pdf"], input=path.read_bytes(), capture_output=True, check=False).stdout
        pages, at = [], 0
        while at + 9 <= len(said):
            length = int.from_bytes(said[at + 5:at + 9])
            if said[at] == 1:
                pages.append(said[at + 9:at + 9 + length].decode())
            at += 9 + length
        return "\n".join(pages)
    return read


def words(text):
    for one, other in SAME.items():
        text = text.replace(one, other)
    # A word that goes on in the next line.
    return unicodedata.normalize("NFC", text.replace("-\n", "")).split()


def in_order(source, read):
    """The longest common subsequence: a bit for each word of the source, which falls when it is matched."""
    places = {}
    for at, word in enumerate(source):
        places[word] = places.get(word, 0) | 1 << at
    full = left = (1 << len(source)) - 1
    for word in read:
        met = left & places.get(word, 0)
        left = (left + met | left - met) & full
    return len(source) - left.bit_count()


def measured(reader, path, source):
    """Words found, in order, too many or few, and the shortest of some times in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        text = reader(path)
        times.append((time.perf_counter() - begun) * 1000)
    read = words(text)
    return (Counter(source) & Counter(read)).total(), in_order(source, read), min(times)


def main():
    folder, *program = sys.argv[1:]
    readers = {"Pdfium": pdfium, "pdf_oxide": oxide} | ({"ours": ours(*program)} if program else {})
    total, sums = 0, {name: [0, 0, 0.0] for name in readers}
    for path in sorted(Path(folder).glob("*.pdf")):
        source = words(path.with_suffix(".txt").read_text())
        total += len(source)
        line = [f"{path.stem:24} {len(source):5}"]
        for name, reader in readers.items():
            try:
                figures = measured(reader, path, source)
            except Exception as fault:  # One that cannot read a paper is measured with the others.
                line.append(f"{name}: {type(fault).__name__}")
                continue
            sums[name] = [sum(pair) for pair in zip(sums[name], figures)]
            line.append(f"{name}: {figures[0]} found, {figures[1]} in order, {figures[2]:.1f} ms")
        print(" | ".join(line))
    for name, (found, order, took) in sums.items():
        print(f"{name}: {found} of {total} words found, {order} in order, {took:.0f} ms")


if __name__ == "__main__":
    main()
