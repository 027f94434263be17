#!/usr/bin/env python3
"""Measures every row of the kernel table with kernel_bench, and writes it as Markdown.

    python3 -B bench/kernel_table.py build/release/bin/kernel_bench > docs/performance/kernels.md

Takes some minutes. One instruction set, the best that the machine has, unless --isa names another.
"""
import argparse
import collections
import datetime
import json
import pathlib
import subprocess

PLACES = ['L1', 'L2', 'L3', 'memory']
ISAS = ['avx512fp16', 'avx512', 'avx2', 'scalar']  # the best first
FORMS = {
    'reduce': 'out = a op b',
    'reduce_in_place': 'a = a op b',
    'reduce_scaled': 'out = a op (scale * b)',
    'fold4': 'out = a op b op c op d',
    'fold2_streaming': 'out = a op b, stored past the caches',
    'fold4_streaming': 'out = a op b op c op d, stored past the caches',
    'scale': 'out = scale * a',
    'divide': 'out = a / n',
}
HEAD = """# Kernels

Every row of the kernel table, as `bench/kernel_table.py` measures it: {cpu}, {isa}, {date}. GB/s of all operands
that are read and written, counted once each, at working sets of half of L1, half of L2, an eighth of the last-level cache,
and four times that. In parentheses the share of the limit: the time to copy one operand with the C library's
memcpy, which stores past the caches where they are too small, and to read the others. Above 1: the copy is no
limit there, since memcpy is not at its best, or three streams of memory are faster than two.
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('bench', type=pathlib.Path, help='the program kernel_bench')
    parser.add_argument('--isa', choices=ISAS, help='instruction set (the best)')
    return parser.parse_args()


def best_isa(bench):
    names = subprocess.run([bench, '--benchmark_list_tests'], capture_output=True, text=True, check=True).stdout
    return next(isa for isa in ISAS if f'/{isa}/' in names)


def measured(bench, isa):
    """What kernel_bench says, by form, then by (type, operation), then by place."""
    run = subprocess.run([bench, f'--benchmark_filter=^copy|/{isa}/', '--benchmark_format=json'],
                         stdout=subprocess.PIPE, text=True, check=True)
    rows = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line in json.loads(run.stdout)['benchmarks']:
        form, *kind, place = line['name'].split('/min_time')[0].split('/')
        rows[form][tuple(kind[:2])][place] = (line['bytes_per_second'] / 1e9, line['of_limit'])
    return rows


def cpu_name():
    for line in pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
        if line.startswith('model name'):
            return ' '.join(line.split(':', 1)[1].split())
    return 'unknown processor'


def print_table(names, rows):
    print('| ' + ' | '.join([*names, *PLACES]) + ' |')
    print('|---' * len(names) + '|---' * len(PLACES) + '|')
    for kind, at in rows:
        cells = [f'{at[place][0]:.0f} ({at[place][1]:.2f})' for place in PLACES]
        print('| ' + ' | '.join([*kind, *cells]) + ' |')


def main():
    given = arguments()
    isa = given.isa or best_isa(given.bench)
    rows = measured(given.bench, isa)
    print(HEAD.format(cpu=cpu_name(), isa=isa, date=datetime.date.today().isoformat()))
    print('## Copies\n')
    print_table([''], [((form,), rows[form][()]) for form in ('copy', 'copy_streaming')])
    for form, meaning in FORMS.items():
        print(f'\n## {form}: `{meaning}`\n')
        print_table(['type', 'op'], rows[form].items())


if __name__ == '__main__':
    main()
