"""When does a job get in between the requests? Pure.

One line leads to the card, first come, first served, for requests and jobs alike. One job at a time, the first that
waits, stands in it or is on the card; the next one enters at the end when that has left the card. So:

- A request is delayed by at most one job more than by requests, and its estimate is true: the job that is in has been
  counted, and nothing gets in before what is in already.
- No full line and no long wait keeps a job out, for it would starve where requests come without a pause. Once in, it
  starts within `--max-wait` and one edit: no request is admitted behind more. The job before it may have entered just
  now, so the first job that waits starts within twice that and one edit.
- Jobs keep no request out either: neither `--queue-hard-limit` nor `--max-wait` counts them. So with jobs without a
  pause, too, a request gets in and has its turn after one job.
"""

from __future__ import annotations

from imageedit_server.gate.drain import DrainPhase


# | drain     | worker ready | a job is in | the first job that waits |
# | --------- | ------------ | ----------- | ------------------------ |
# | begun     | any          | any         | stays: the next process takes it, and this one ends sooner |
# | none      | no           | any         | stays                    |
# | none      | yes          | yes         | stays                    |
# | none      | yes          | no          | enters at the end, however long the line is |
def job_may_enter(*, drain: DrainPhase, worker_ready: bool, jobs_in: int) -> bool:
    """Whether the first job that waits takes its place in the line now."""
    return drain is DrainPhase.ACCEPTING and worker_ready and jobs_in == 0
