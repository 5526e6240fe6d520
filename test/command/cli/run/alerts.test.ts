import { createServer } from "node:http"
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { parseAlert } from "../../../../src/command/cli/alerts/alert.ts"
import { alertSink } from "../../../../src/command/cli/alerts/alerts.ts"
import { AlertLimits, deliver } from "../../../../src/command/cli/alerts/deliver.ts"
import { Output } from "../../../../src/command/cli/output/output.ts"
import { recorded, update } from "../../../run/record/events.ts"
import { begin, effect, isTraining, program, until, withFolder, write } from "../effect.ts"
import { isRunning } from "../isRunning.ts"

const facts = { event: "failed", run: "results/0001", name: "walk", seed: 7, message: "first\nsecond" } as const

let folder = ""
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "alerts-"))))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const limits = { commandSeconds: 60, webhookSeconds: 60, maxRetries: 2, startingDelay: 0.001 }

/** Delivers an alert with short limits, and returns what it writes to stderr. */
const delivered = async (target: Parameters<typeof deliver>[0]): Promise<string> => {
  let stderr = ""
  await Effect.runPromise(
    deliver(target, facts).pipe(
      Effect.provideService(AlertLimits, limits),
      Effect.provideService(Output, { stdout: () => Effect.void, stderr: (text) => void (stderr += text) }),
    ),
  )
  return stderr
}

describe("the flag --alert", () => {
  it("has moments, thresholds and a target", () => {
    const parsed = parseAlert("ended, losses/approx_kl > 0.1,validation>=475: notify 'a: b'")
    assert.isTrue("alert" in parsed)
    if (!("alert" in parsed)) return
    assert.deepEqual(parsed.alert.moments, ["finished", "failed", "stopped"])
    assert.deepEqual(
      parsed.alert.thresholds.map(({ text, key, isPassed }) => [text, key, isPassed(0.5), isPassed(475)]),
      [
        ["losses/approx_kl>0.1", "losses/approx_kl", true, true],
        ["validation>=475", "validation/score", false, true],
      ],
    )
    assert.deepEqual(parsed.alert.target, { command: "notify 'a: b'" })
  })

  for (const [text, problem] of [
    ["", "WHEN: COMMAND"],
    ["ended", "WHEN: COMMAND"],
    ["ended: ", "WHEN: COMMAND"],
    ["sometimes: x", 'found "sometimes"'],
    ["validation=1: x", 'found "validation=1"'],
    ["validation>high: x", 'found "validation>high"'],
    ["ended: https://me:secret@host/", "without a user"],
    [`ended: ${"x".repeat(5000)}`, "at most 4096 characters"],
  ] as const) {
    it(`refuses ${text.slice(0, 40)}`, () => {
      const parsed = parseAlert(text)
      assert.include("problem" in parsed ? parsed.problem : "", problem)
      assert.notInclude(JSON.stringify(parsed), "secret")
    })
  }
})

describe.skipIf(process.platform === "win32")("an alert to a command", () => {
  it("gives the facts as variables and as JSON, and puts none into the command line", async () => {
    const [input, variables] = [join(folder, "input"), join(folder, "variables")]
    const command = `cat > ${input}; printf '%s|%s|%s' "$EFFECT_ALERT_EVENT" "$EFFECT_ALERT_SEED" "$EFFECT_ALERT_MESSAGE" > ${variables}`
    assert.strictEqual(await delivered({ command }), "")
    assert.deepEqual(JSON.parse(readFileSync(input, "utf8")), { ...facts, message: "first" })
    assert.strictEqual(readFileSync(variables, "utf8"), "failed|7|first")
  })

  it("that fails is a warning with its last line", async () => {
    assert.match(await delivered({ command: "echo no such sound >&2; exit 3" }), /failed: .*exit code 3: no such sound/)
    assert.match(await delivered({ command: "cat > /dev/null; no-such-program-here" }), /exit code 127/)
  })

  it("that does not end is ended, with all that it has started", async () => {
    const pids = join(folder, "pids")
    const begun = () => (existsSync(pids) ? (readFileSync(pids, "utf8").match(/^\d+\n/gm) ?? []) : [])
    const command = `sleep 1000 & echo $! > ${pids}; echo $$ >> ${pids}; sleep 1000`
    let stderr = ""
    await Effect.runPromise(
      Effect.gen(function* () {
        const delivering = yield* Effect.forkChild(deliver({ command }, facts), { startImmediately: true })
        yield* Effect.promise(() => until(() => begun().length === 2))
        yield* TestClock.adjust("60 seconds")
        yield* Fiber.join(delivering)
      }).pipe(
        Effect.provideService(AlertLimits, limits),
        Effect.provideService(Output, { stdout: () => Effect.void, stderr: (text) => void (stderr += text) }),
        Effect.provide(TestClock.layer()),
      ),
    )
    assert.include(stderr, "did not end within 60 seconds")
    for (const pid of begun()) await until(() => !isRunning(Number(pid)))
  })

  it("leaves no process behind", async () => {
    const pid = join(folder, "pid")
    assert.strictEqual(await delivered({ command: `sleep 1000 & echo $! > ${pid}` }), "")
    await until(() => !isRunning(Number(readFileSync(pid, "utf8"))))
  })
})

describe.skipIf(process.platform === "win32")("many alerts at once", () => {
  it("start at most four commands at a time, with one listener to the end of the process", async () => {
    const [log, go] = [join(folder, "many"), join(folder, "go")]
    writeFileSync(log, "")
    const command = `echo begun >> ${log}; until [ -e ${go} ]; do sleep 0.01; done`
    const alerts = Array.from({ length: 12 }, (_, index) => {
      const parsed = parseAlert(`losses/entropy>${index}: ${command}`)
      return "alert" in parsed ? [parsed.alert] : []
    }).flat()
    const begun = () => readFileSync(log, "utf8").trim().split("\n").length
    const listeners = process.listenerCount("exit")
    let [started, listening] = [0, 0]
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { emit } = yield* recorded(alertSink(alerts, (directory) => directory))
          yield* emit([update(1, { "losses/entropy": 100 })])
          yield* Effect.promise(() => until(() => begun() >= 4))
          // All commands that may start have been started by now.
          started = process.getActiveResourcesInfo().filter((name) => name === "ProcessWrap").length
          listening = process.listenerCount("exit")
          writeFileSync(go, "")
        }),
      ),
    )
    assert.deepStrictEqual([started, listening], [4, listeners + 1])
    assert.strictEqual(begun(), 12)
    assert.strictEqual(process.listenerCount("exit"), listeners)
  })
})

describe("an alert to a webhook", () => {
  /** Runs `body` with the address of a server that gives these answers one after another, and returns the bodies that it got. */
  const withServer = async (
    statuses: ReadonlyArray<number>,
    body: (address: string) => Promise<void>,
    location?: string,
  ) => {
    const received: Array<unknown> = []
    const server = createServer((request, response) => {
      let text = ""
      request.on("data", (part) => (text += String(part)))
      request.on("end", () => {
        const status = statuses[received.length] ?? statuses.at(-1) ?? 200
        received.push({ method: request.method, type: request.headers["content-type"], json: JSON.parse(text) })
        response.writeHead(status, location === undefined ? {} : { location }).end(`about ${request.url}`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    try {
      await body(`http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`)
    } finally {
      server.closeAllConnections()
      server.close()
    }
    return received
  }

  it("posts JSON, and tries again when the server fails", async () => {
    const received = await withServer([503, 200], async (address) => {
      assert.strictEqual(await delivered({ webhook: new URL("/hook", address) }), "")
    })
    const post = { method: "POST", type: "application/json", json: { ...facts, message: "first" } }
    assert.deepEqual(received, [post, post])
  })

  it("that is refused is a warning without the path, which may be a key", async () => {
    const received = await withServer([404], async (address) => {
      const stderr = await delivered({ webhook: new URL("/hook/T0P-S3CRET?key=abc", address) })
      assert.include(stderr, "404")
      assert.notInclude(stderr, "S3CRET")
      assert.notInclude(stderr, "abc")
    })
    assert.lengthOf(received, 1)
  })

  it("is not sent on to another origin", async () => {
    const others = await withServer([200], async (other) => {
      const deliverTo = async (address: string) =>
        assert.match(
          await delivered({ webhook: new URL("/hook", address) }),
          /redirects to http:.*, where nothing was sent/,
        )
      assert.lengthOf(await withServer([307], deliverTo, `${other}/take`), 1)
    })
    assert.lengthOf(others, 0)
  })

  it("without a path has a warning that can be read", async () => {
    await withServer([404], async (address) => {
      const stderr = await delivered({ webhook: new URL(address) })
      assert.include(stderr, `the alert to ${address} failed: `)
      assert.notInclude(stderr, "…")
    })
  })

  it("that nobody takes is a warning", async () => {
    let address = ""
    await withServer([200], async (own) => void (address = own))
    assert.match(
      await delivered({ webhook: new URL("/hook", address) }),
      /the alert to http:.* failed: .*cannot be reached/,
    )
  })
})

describe.skipIf(process.platform === "win32")("a run with alerts", () => {
  it("delivers them in the order of what happens, and has the same result as without them", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("validation: { everySteps: 512, episodes: 3 }"))
      const log = join(folder, "alerts.jsonl")
      const args = ["run", file, "--seed", "1", "--json", "--results-dir", join(folder, "results")]
      const plain = await effect(args)
      const flags = [
        `validation>0: cat >> ${log}`,
        `validation>1e9: cat >> ${log}`,
        `ended: cat >> ${log}; ls "$EFFECT_ALERT_RUN/return.json" || echo no result >> ${log}`,
        "finished: exit 5",
        `failed: echo failed >> ${log}`,
      ]
      const alerted = await effect([...args, ...flags.flatMap((flag) => ["--alert", flag])])
      assert.strictEqual(alerted.code, 0, alerted.stderr)
      assert.include(alerted.stderr, "the alert to exit 5 failed: it ended with exit code 5")
      const [first, second] = [plain, alerted].map(({ stdout }) => JSON.parse(stdout))
      assert.strictEqual(second.digest, first.digest)
      const told = readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepEqual(
        told.map(({ event, condition }) => [event, condition]),
        [
          ["threshold", "validation>0"],
          ["finished", undefined],
        ],
      )
      assert.deepInclude(told[1], { run: second.runDir, seed: 1, environment: "CartPole-v1", algorithm: "ppo" })
    }))

  it("tells why a run failed, and that one was stopped", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const log = join(folder, "alerts.jsonl")
      const told = () =>
        readFileSync(log, "utf8")
          .trim()
          .split("\n")
          .map((line): Record<string, unknown> => JSON.parse(line))
      const results = join(folder, "results")
      const alert = ["--alert", `ended: cat >> ${log}`, "--results-dir", results, "--quiet"]
      const callback = '[Callback.make({ name: "bug", afterUpdate: () => { throw new Error("my own bug") } })]'
      const failing = write(folder, "fails.ts", program(`callbacks: ${callback}`, "Callback, CartPole, Ppo, Train"))
      const failed = await effect(["run", failing, ...alert])
      assert.strictEqual(failed.code, 1, failed.stderr)
      assert.strictEqual(told()[0].event, "failed")
      assert.match(String(told()[0].message), /^.*my own bug.*$/)

      const long = write(folder, "long.ts", program("").replace("totalSteps: 2048", "totalSteps: 200_000_000"))
      const running = begin(["run", long, ...alert])
      const runs = () => globSync(join(results, "*/*long*/*/0001"))
      await until(() => runs().length === 1 && isTraining(runs()[0]))
      running.interrupt()
      assert.strictEqual((await running.ended).code, 130)
      assert.deepInclude(told()[1], { event: "stopped", name: "long" })
    }),
  )

  it("tells once that a sweep has ended, and that the first of its runs has passed a threshold", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 2 }"))
      const log = join(folder, "alerts.jsonl")
      const results = join(folder, "results")
      const alerts = [`ended: cat >> ${log}`, `validation>1: cat >> ${log}`].flatMap((flag) => ["--alert", flag])
      const args = ["run", file, "--seeds", "1..2", "--jobs", "1", "--results-dir", results, "--quiet", ...alerts]
      const { code, stderr } = await effect(args)
      assert.strictEqual(code, 0, stderr)
      const [passed, ended, ...more] = readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .map((line): Record<string, unknown> => JSON.parse(line))
      assert.deepInclude(passed, { event: "threshold", name: "train", seed: 1, step: 1024, condition: "validation>1" })
      assert.match(String(passed.run), /\/0001$/)
      assert.deepEqual(ended, { event: "finished", run: results, name: "train" })
      assert.lengthOf(more, 0)
    }),
  )

  it("are refused before anything is trained, if they are written wrongly", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(""))
      for (const flag of ["someday: true", "validation>high: true"]) {
        const { code, stderr } = await effect(["run", file, "--alert", flag], folder)
        assert.strictEqual(code, 2)
        assert.include(stderr, "--alert: expected ended, finished, failed, stopped or a threshold")
      }
      const sweep = await effect(["run", file, "--seeds", "1..2", "--alert", "losses/entropy>1: true"], folder)
      assert.strictEqual(sweep.code, 2)
      assert.include(sweep.stderr, "--alert losses/entropy>1: a sweep only compares the scores of validations")
    }))
})
