"""What a soak on PostgreSQL watches: how large tables, indexes and the write-ahead log are, and that they stay level."""

import time
from dataclasses import dataclass

from postgres import Postgres
from soak import Soak, Worker

MIB = 1 << 20
WAL_SEGMENT = 16 * MIB

# Of each table: heap, indexes, TOAST with its index, dead rows here and there, vacuums here and there.
TABLES = """
SELECT c.relname, pg_relation_size(c.oid), pg_indexes_size(c.oid),
    coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0),
    s.n_dead_tup, coalesce(t.n_dead_tup, 0), s.autovacuum_count, coalesce(t.autovacuum_count, 0)
FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
LEFT JOIN pg_stat_all_tables t ON t.relid = c.reltoastrelid
WHERE c.relnamespace = 'strandline'::regnamespace ORDER BY c.relname"""
WAL = "SELECT sum(size) FROM pg_ls_waldir()"
DATABASE = "SELECT pg_database_size(current_database())"
# What is seen of it: records that are kept, and those of dropped chunks that are not removed yet.
KEPT = "SELECT coalesce(sum(length), 0) FROM strandline.entries"


@dataclass
class Sample:
    """Bytes by what holds them, at a moment of the run (0 to 1)."""

    at: float
    bytes: dict[str, int]
    dead: dict[str, int]
    vacuums: dict[str, int]


class Sizes(Worker):
    """Takes a sample every few seconds."""

    def __init__(self, soak: Soak, postgres: Postgres, seconds: float):
        super().__init__(soak, "watch of the sizes")
        self.postgres, self.seconds = postgres, seconds
        self.samples: list[Sample] = []

    def work(self) -> None:
        begun = time.monotonic()
        while not self.soak.stopping.wait(min(self.seconds / 120, 10)):
            sample = self.take((time.monotonic() - begun) / self.seconds)
            self.samples.append(sample)
            told = ", ".join(f"{name} {size / MIB:.1f}" for name, size in sample.bytes.items() if size >= MIB / 10)
            dead = ", ".join(f"{name} {count}" for name, count in sample.dead.items() if count > 100)
            vacuums = ", ".join(f"{name} {count}" for name, count in sample.vacuums.items() if count)
            print(f"{sample.at:.3f}: MiB: {told}; dead: {dead}; vacuums: {vacuums}", flush=True)

    def take(self, at: float) -> Sample:
        sample = Sample(at, {}, {}, {})
        for line in self.postgres.sql(TABLES).splitlines():
            table, heap, indexes, toast, dead, toast_dead, vacuums, toast_vacuums = line.split("|")
            sample.bytes |= {table: int(heap), f"{table} indexes": int(indexes), f"{table} toast": int(toast)}
            sample.dead |= {table: int(dead), f"{table} toast": int(toast_dead)}
            sample.vacuums |= {table: int(vacuums), f"{table} toast": int(toast_vacuums)}
        sample.bytes["wal"] = int(self.postgres.sql(WAL))
        sample.bytes["database"] = int(self.postgres.sql(DATABASE))
        return sample

    def most(self, name: str, begin: float, end: float) -> int:
        return max(sample.bytes[name] for sample in self.samples if begin <= sample.at < end)

    def growth(self, slack: float, step: int) -> list[str]:
        """What was larger in the second half than in the first, or in the last quarter than in the third.

        `slack` and bytes more are no growth; of the write-ahead log two files are not."""
        found = []
        for name in self.samples[-1].bytes:
            more = max(step, 2 * WAL_SEGMENT) if name == "wal" else step
            for what, before, after in [
                ("second half", self.most(name, 0.1, 0.5), self.most(name, 0.5, 9)),
                ("last quarter", self.most(name, 0.5, 0.75), self.most(name, 0.75, 9)),
            ]:
                if after > before * (1 + slack) + more:
                    found.append(f"{name} grew in the {what}: {after / MIB:.1f} MiB after {before / MIB:.1f}")
        return found
