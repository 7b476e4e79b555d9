"""pytest plugin: a line for each test (suite, id, status, seconds, first line of the failure), written as soon as it ends.

A test that takes the whole process down leaves no line: it did not run.
"""
import os

_worst = {}
_rank = {'passed': 0, 'skipped': 1, 'failed': 2}


def _reason(report):
    if report.passed:
        return ''
    crash = getattr(report.longrepr, 'reprcrash', None)
    text = crash.message if crash else str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
    return ' '.join(text.split())[:200]


def pytest_runtest_logreport(report):
    outcome, seconds, reason = _worst.get(report.nodeid, ('passed', 0.0, ''))
    if _rank[report.outcome] > _rank[outcome]:
        outcome, reason = report.outcome, _reason(report)
    _worst[report.nodeid] = (outcome, seconds + report.duration, reason)
    if report.when == 'teardown':
        outcome, seconds, reason = _worst.pop(report.nodeid)
        with open(os.environ['RESULTS'], 'a') as out:
            out.write(f'kafka-python\t{report.nodeid}\t{outcome}\t{seconds:.2f}\t{reason}\n')
