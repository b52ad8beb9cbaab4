"""The gate under everything at once: requests, retries, clients that leave, workers that die, drains, deadlines.

In any order: every request gets exactly one answer, and that of its own content; never are two edits on the card;
nobody's edit is cancelled under them; and at the end nothing is left behind.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from imageedit_server.api.costs import Costs
from imageedit_server.api.queue import EditQueue
from imageedit_server.api.retries import KEEP_S, LINGER_S, Retries
from imageedit_server.api.ticket import TooLate
from imageedit_server.api.turn import Asked, take_turn
from imageedit_server.errors import ApiError, ClientGone, Conflict, Overloaded, Unavailable
from imageedit_server.gate.admission import Ask, Limits, Refusal, Work, refusal
from imageedit_server.gate.dedupe import By, Identity
from imageedit_server.gate.drain import DrainPhase
from imageedit_server.gate.estimate import Load
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size
from support.hand_worker import LOST, HandWorker
from unit.operator_shell.virtual_time import virtual_loop

HARD_LIMIT = 3


@dataclass(kw_only=True)
class Client:
    """One request, and the answers that it got."""

    identity: Identity
    gone: asyncio.Event
    answers: list[str] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class Gate:
    """The real queue, retries, costs and admission, around a worker that the test plays."""

    def __init__(self, worker: HandWorker) -> None:
        loop = asyncio.get_running_loop()
        self.costs = Costs()
        self.queue = EditQueue(
            edit=worker.edit, cancel=worker.cancel, now_s=loop.time, expected_s=self.costs.expected_s
        )
        self.retries = Retries(now_s=loop.time)
        self.drain = DrainPhase.ACCEPTING
        self.ready = True
        self.attachments = 0

    def check_admission(self, ask: Ask) -> None:
        refused = refusal(
            drain=self.drain,
            worker_ready=self.ready,
            work=Work(load=self.queue.line.load, ahead_s=self.queue.line.ahead_s),
            limits=Limits(hard_limit=HARD_LIMIT, max_wait_s=20.0),
            ask=ask,
        )
        if refused is None:
            return
        if refused.reason in (Refusal.QUEUE_FULL, Refusal.WAIT_TOO_LONG):
            raise Overloaded("full", code=refused.reason.value)
        raise Unavailable("away", code=refused.reason.value)

    def attached(self, by: By) -> None:
        self.attachments += 1


class GateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = virtual_loop()
        self.clients: list[Client] = []
        self.contents: dict[str, str] = {}
        self.worker = HandWorker()

    @initialize()
    def begin(self) -> None:
        async def make() -> Gate:
            gate = Gate(self.worker)
            gate.queue.release()
            return gate

        self.gate = self.loop.run_until_complete(make())
        self.runner = self.loop.create_task(self.gate.queue.run())

    @rule(
        key=st.sampled_from([None, "k", "l"]),
        content=st.sampled_from("mn"),
        retry=st.booleans(),
        may_retry=st.booleans(),
        patience_s=st.sampled_from([math.inf, math.inf, 0.4, 3.0, 30.0]),
    )
    def request(self, key: str | None, content: str, retry: bool, may_retry: bool, patience_s: float) -> None:
        identity = Identity(scope="s", content=content, key=key, retry=retry, may_retry=retry or may_retry)
        before = self._in(), self.gate.attachments
        same = any(self._waits(one) and one.identity == identity for one in self.clients)
        name = f"job-{len(self.clients)}"
        self.contents[name] = content
        job = EditJob(job_id=name, picture=b"", size=Size(32, 32), prompt=content, steps=4, seed=0)
        client = Client(identity=identity, gone=asyncio.Event())
        client.task = self.loop.create_task(self._ask(client, job, self.loop.time() + patience_s))
        self.clients.append(client)
        self._settle()

        if same and (key is not None or retry):
            assert self.gate.attachments == before[1] + 1
            assert self._in() <= before[0]

    async def _ask(self, client: Client, job: EditJob, deadline_s: float) -> None:
        asked = Asked(job=job, identity=client.identity, deadline_s=deadline_s, steps_open=False)

        async def gone() -> None:
            await client.gone.wait()

        try:
            done = await take_turn(self.gate, asked, gone=gone())
            client.answers.append(done.result.picture.decode())
        except WorkerError as error:
            client.answers.append(error.failure.reason)
        except (Conflict, TooLate, ClientGone, ApiError, RuntimeError) as error:
            client.answers.append(type(error).__name__)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        waiting = [client for client in self.clients if self._waits(client)]
        if waiting:
            data.draw(st.sampled_from(waiting)).gone.set()
            self._settle()

    @precondition(lambda self: self.worker.running is not None)
    @rule()
    def step(self) -> None:
        self.worker.step()
        self._settle()

    @precondition(lambda self: self.worker.running is not None)
    @rule()
    def finish(self) -> None:
        assert self.worker.running is not None
        self.worker.finish(self.contents[self.worker.running.job_id].encode())
        self._settle()

    @precondition(lambda self: self.worker.running is not None)
    @rule()
    def fail(self) -> None:
        self.worker.fail(RuntimeError("a bug"))
        self._settle()

    @rule(for_good=st.booleans())
    def die(self, for_good: bool) -> None:
        self.gate.ready = False
        self.gate.queue.hold()
        if self.worker.running is not None:
            self.worker.fail(WorkerError(LOST))
        if for_good:
            self.gate.queue.fail_all(LOST)
        self._settle()

    @precondition(lambda self: not self.gate.ready)
    @rule()
    def revive(self) -> None:
        self.gate.ready = True
        self.gate.queue.release()
        self._settle()

    @rule(phase=st.sampled_from([DrainPhase.ACCEPTING, DrainPhase.PROPAGATING, DrainPhase.REFUSING]))
    def drain(self, phase: DrainPhase) -> None:
        self.gate.drain = phase

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

        if seconds > LINGER_S and not any(self._waits(client) for client in self.clients):
            assert self.gate.queue.line.load.waiting == 0
            assert self.worker.running is None or self.worker.running.job_id in self.worker.cancelled

    @invariant()
    def never_two_on_the_card(self) -> None:
        assert self.worker.most_at_once <= 1

    @invariant()
    def never_more_in_than_may(self) -> None:
        if hasattr(self, "gate"):
            assert self._in() <= 1 + HARD_LIMIT

    @invariant()
    def answered_at_most_once_and_with_its_own_content(self) -> None:
        for client in self.clients:
            assert len(client.answers) <= 1
            assert client.answers in ([], [client.identity.content]) or client.answers[0] not in ("m", "n")

    @invariant()
    def nobody_is_cancelled_under(self) -> None:
        assert not any(client.answers == ["Cancelled"] for client in self.clients)

    @invariant()
    def whoever_is_not_answered_has_an_edit_that_is_in(self) -> None:
        if any(self._waits(client) for client in self.clients):
            assert self._in() > 0

    def teardown(self) -> None:
        try:
            if hasattr(self, "gate"):
                self._end()
        finally:
            self.loop.close()

    def _end(self) -> None:
        self.gate.ready = True
        self.gate.queue.release()
        self._settle()
        while self.worker.running is not None:
            self.step()
            if self.worker.running is not None:
                self.finish()
        self.loop.run_until_complete(asyncio.sleep(KEEP_S + 5))

        assert all(len(client.answers) == 1 for client in self.clients)
        assert self.gate.queue.line.load == Load()
        # Looking for anything forgets what is too old.
        self.gate.retries.find(Identity(scope="", content=""))
        assert (self.gate.retries.known, self.gate.retries.kept_bytes) == (0, 0)
        self.runner.cancel()
        self._settle()
        assert asyncio.all_tasks(self.loop) == set()

    @staticmethod
    def _waits(client: Client) -> bool:
        return not client.answers and not client.gone.is_set()

    def _in(self) -> int:
        load = self.gate.queue.line.load
        return load.running + load.waiting

    def _settle(self) -> None:
        async def settled() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(settled())


GateMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestGate = GateMachine.TestCase
