import { execFile } from "node:child_process"
import { createServer } from "node:net"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { CodeRunner, type CodeTest, type TestOutcome } from "../../../../src/agents/task/code/CodeRunner.ts"
import { lockDown } from "../../../../src/agents/task/code/guest-node.ts"
import { flags, layer as codeRunner } from "../../../../src/agents/task/code/runner-node.ts"
import { listen } from "../../../servers/listen.ts"

/** Runs a program and one expression after it, which should be 1, and returns the outcome. */
const outcome = (program: string, run = "result()"): Effect.Effect<TestOutcome, unknown, CodeRunner> =>
  Effect.map(CodeRunner.run({ program, tests: [{ run, expected: 1 }] }), ([first]) => first)

const tags = (outcomes: ReadonlyArray<TestOutcome>): ReadonlyArray<string> => outcomes.map(({ _tag }) => _tag)

/** Another way out of the realm for each: an expression for something that is not of it. */
const doors: ReadonlyArray<[door: string, expression: string]> = [
  ["this", "globalThis"],
  ["the error of an import", `await import("node:fs").then(() => null, (error) => error)`],
  ["the error of a script too deep", `(() => { const f = () => f(); try { f() } catch (error) { return error } })()`],
  [
    "who calls",
    `(() => { let found; Error.prepareStackTrace = (_, sites) => { found = sites.map((s) => s.getThis() ?? s.getFunction()).find((x) => x) }; new Error().stack; return found ?? {} })()`,
  ],
  ["the console", "console"],
]

layer(codeRunner({ timeoutMs: 60_000, memoryMb: 64, concurrency: 2 }), { timeout: "1 hour" })("a program", (it) => {
  it.effect("passes the tests it gets right, and fails the others", () =>
    Effect.gen(function* () {
      const tests: ReadonlyArray<CodeTest> = [
        { run: "add(1, 2)", expected: 3 },
        { run: "add(2, 2)", expected: 5 },
        { run: "[add('a', 'b'), { x: [add(1, 1)], y: null }]", expected: ["ab", { y: null, x: [2] }] },
        { run: "later(1)", expected: 2 },
        { run: "nothing()", expected: null },
        { run: "[0 / 0, 1 / 0, 3n]", expected: ["NaN", "Infinity", "3"] },
        { run: "oops()", expected: 1 },
        { run: "missing()", expected: 1 },
        { run: "add(", expected: 1 },
        { run: "new Promise(() => {})", expected: 1 },
        { run: "(async () => { throw 'late' })()", expected: 1 },
        { run: "[1, 2]", expected: { 0: 1, 1: 2 } },
        { run: "console.log('hello') ?? 1", expected: 1 },
      ]
      const program = `
        const add = (a, b) => a + b
        async function later(x) { await null; return x + 1 }
        function nothing() {}
        const oops = () => { throw new RangeError("too far") }`
      assert.deepStrictEqual(yield* CodeRunner.run({ program, tests }), [
        { _tag: "Passed" },
        { _tag: "Failed", got: "4" },
        { _tag: "Passed" },
        { _tag: "Passed" },
        { _tag: "Failed", got: "undefined" },
        { _tag: "Passed" },
        { _tag: "Threw", message: "RangeError: too far" },
        { _tag: "Threw", message: "ReferenceError: missing is not defined" },
        { _tag: "Threw", message: "SyntaxError: Unexpected end of input" },
        { _tag: "Threw", message: "a promise that never settles" },
        { _tag: "Threw", message: "late" },
        { _tag: "Failed", got: "[1,2]" },
        { _tag: "Passed" },
      ])
    }),
  )

  it.effect("runs anew for every test", () =>
    Effect.gen(function* () {
      const tests = [1, 1, 1].map((expected) => ({ run: "globalThis.count = (globalThis.count ?? 0) + 1", expected }))
      assert.deepStrictEqual(tags(yield* CodeRunner.run({ program: "", tests })), ["Passed", "Passed", "Passed"])
      assert.deepStrictEqual(yield* CodeRunner.run({ program: "", tests: [] }), [])
    }),
  )

  it.effect("may drop promises that fail", () =>
    Effect.gen(function* () {
      const tests = [1, 2, 3].map((expected) => ({
        run: `(Promise.reject(new Error("dropped")), Promise.resolve(${expected}))`,
        expected,
      }))
      const program = "void (async () => { throw new Error('dropped, too') })()"
      assert.deepStrictEqual(tags(yield* CodeRunner.run({ program, tests })), ["Passed", "Passed", "Passed"])
    }),
  )

  it.effect("that has a syntax error, or throws, passes no test", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* outcome("function ("), {
        _tag: "Threw",
        message: "SyntaxError: Function statements require a function name",
      })
      assert.deepStrictEqual(yield* outcome("throw new Error('at once')", "1"), {
        _tag: "Threw",
        message: "Error: at once",
      })
    }),
  )

  it.effect("that hangs in any way is stopped; its answers until then count", () =>
    Effect.gen(function* () {
      const ways = [
        "for (;;) {}",
        "(async () => { for (;;) await null })()",
        "/(a+)+$/.test('a'.repeat(50) + 'b')",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "({ toJSON() { for (;;) {} } })",
        "(() => { throw { toString() { for (;;) {} } } })()",
      ]
      yield* Effect.forEach(
        ways,
        Effect.fnUntraced(function* (way) {
          const outcomes = yield* CodeRunner.run({
            program: "",
            tests: [
              { run: "1", expected: 1 },
              { run: way.startsWith("for") ? `(() => { ${way} })()` : way, expected: 1 },
              { run: "1", expected: 1 },
            ],
          })
          assert.deepStrictEqual(tags(outcomes), ["Passed", "TimedOut", "TimedOut"], way)
        }),
        { concurrency: 3 },
      )
    }).pipe(Effect.provide(codeRunner({ timeoutMs: 5000, concurrency: 3 }))),
  )

  it.effect("that takes too much memory is stopped, in the heap and outside it", () =>
    Effect.gen(function* () {
      const heap = "const all = []; const result = () => { for (;;) all.push(new Array(1000).fill(all.length)) }"
      assert.strictEqual((yield* outcome(heap))._tag, "OutOfMemory")
      const buffers = "const all = []; const result = () => { for (;;) all.push(new Uint8Array(1e7).fill(1)) }"
      assert.strictEqual((yield* outcome(buffers))._tag, "OutOfMemory")
      const text = "const result = () => { let s = 'x'; for (;;) s += s.toUpperCase() + Math.random() }"
      assert.include(["Threw", "OutOfMemory"], (yield* outcome(text))._tag)
      const wasm = "const result = () => new WebAssembly.Memory({ initial: 60000 }).buffer.byteLength"
      assert.notStrictEqual((yield* outcome(wasm))._tag, "Passed")
      assert.deepStrictEqual(yield* outcome("", "'x'.repeat(1e6)"), {
        _tag: "Threw",
        message: "an answer of 1000003 characters; expected at most 100000",
      })
    }),
  )

  it.effect("has no access to Node", () =>
    Effect.gen(function* () {
      const names = [
        "process",
        "require",
        "module",
        "fetch",
        "setTimeout",
        "Buffer",
        "WebSocket",
        "global",
        "queueMicrotask",
      ]
      for (const name of names)
        assert.deepStrictEqual(yield* outcome("", `typeof ${name} === "undefined" ? 1 : 0`), { _tag: "Passed" }, name)
      assert.strictEqual((yield* outcome("", "process.exit(0)"))._tag, "Threw")
      for (const run of [`import("node:fs").then(() => 1)`, `import("data:text/javascript,1").then(() => 1)`]) {
        const led = yield* outcome("", run)
        assert.strictEqual(led._tag, "Threw", run)
      }
    }),
  )

  for (const [door, expression] of doors) {
    it.effect(`finds no way out by ${door}`, () =>
      Effect.gen(function* () {
        const program = `
          const result = async () => {
            const thing = ${expression}
            const found = []
            for (let at = thing; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) {
              for (const key of Reflect.ownKeys(at)) {
                let value
                try { value = at[key] } catch { continue }
                if (typeof value !== "function") continue
                try {
                  const it = value.constructor("return typeof process + typeof require")()
                  if (it !== "undefinedundefined") found.push(String(key))
                } catch {}
                try {
                  const it = value.constructor.constructor("return process")()
                  if (it !== undefined) found.push(String(key))
                } catch {}
              }
            }
            try { if (thing.constructor.constructor("return process")() !== undefined) found.push("itself") } catch {}
            return found.length === 0 ? 1 : found.join()
          }`
        assert.deepStrictEqual(yield* outcome(program), { _tag: "Passed" })
      }),
    )
  }

  it.effect("gains nothing by changing built-in prototypes", () =>
    Effect.gen(function* () {
      const tricks = [
        "JSON.stringify = () => '1'",
        "Array.prototype.push = () => 1; Object.prototype.toJSON = () => 1; String = () => '1'",
        "Promise.prototype.then = (f) => f(1)",
        "Object.defineProperty(Object.prototype, 'value', { get: () => '1' })",
        "Object.prototype.expected = 2; Object.prototype._tag = 'Passed'; Object.prototype.__proto__ = null",
        "globalThis.JSON = { parse: () => 1, stringify: () => '1' }",
        "console.log(JSON.stringify({ index: 0, value: '1' }))",
        "Error.prepareStackTrace = () => 1; Function.prototype.call = () => 1",
      ]
      for (const trick of tricks) {
        const led = yield* CodeRunner.run({
          program: `try { ${trick} } catch {}`,
          tests: [
            { run: "2", expected: 1 },
            { run: "({ a: 2 })", expected: { a: 1 } },
            { run: "(() => { throw new Error('no') })()", expected: 1 },
          ],
        })
        assert.notInclude(tags(led), "Passed", trick)
      }
      // A program may choose its own JSON: it is only an answer.
      assert.strictEqual((yield* outcome("", "({ toJSON: () => 1 })"))._tag, "Passed")
    }),
  )

  it.effect("that is interrupted is killed", () =>
    Effect.gen(function* () {
      const running = yield* Effect.forkChild(outcome("for (;;) {}"), { startImmediately: true })
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 200)))
      yield* Fiber.interrupt(running)
      // Its place is free again: two at a time are all.
      const both = yield* Effect.forEach([1, 2], () => outcome("", "1"), { concurrency: 2 })
      assert.deepStrictEqual(tags(both), ["Passed", "Passed"])
    }),
  )
})

/** Runs code in Node itself, as if a program had escaped its realm, and returns what it prints. */
const outside = (text: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const lines = `const say = console.log; ${text}`
    execFile(process.execPath, flags(64, lines), { env: { SECRET: "no" } }, (_, stdout) =>
      resume(Effect.succeed(stdout.trim())),
    )
  })

it.effect("outside its realm a program still cannot read, start or load anything", () =>
  Effect.gen(function* () {
    const tries = [
      "fs.readFileSync(process.execPath)",
      "fs.readdirSync('/')",
      "fs.writeFileSync('/tmp/effect-rl-guest', '')",
      "child.execFileSync(process.execPath, ['--version'])",
      "new threads.Worker('1', { eval: true })",
      "process.binding('fs')",
      "process.dlopen({ exports: {} }, '/nothing.node')",
      "eval('1')",
      "new Function('return 1')()",
    ]
    const said = yield* outside(`
      const fs = require("fs"), child = require("child_process"), threads = require("worker_threads")
      ${tries.map((one) => `try { ${one}; say("done") } catch (error) { say(error.code ?? error.name) }`).join("\n")}`)
    assert.deepStrictEqual(said.split("\n"), [
      ...Array.from({ length: 6 }, () => "ERR_ACCESS_DENIED"),
      "ERR_DLOPEN_DISABLED",
      "EvalError",
      "EvalError",
    ])
  }),
)

it.effect("outside its realm a program still has no network", () =>
  Effect.gen(function* () {
    let visitors = 0
    const server = createServer((socket) => {
      visitors++
      socket.destroy()
    })
    const port = yield* Effect.acquireRelease(
      Effect.promise(() => listen(server)),
      () => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void))),
    )
    const visit = (before: string) =>
      outside(`
        const net = require("net"), http = require("http"), dns = require("dns"), dgram = require("dgram"), { fetch } = globalThis
        const url = "http://127.0.0.1:${port}/"
        ${before}
        const ways = {
          net: () => net.connect(${port}, "127.0.0.1"),
          http: () => http.get(url),
          listen: () => net.createServer().listen(0),
          lookup: () => dns.lookup("localhost", () => {}),
          datagram: () => dgram.createSocket("udp4").send("x", ${port}, "127.0.0.1"),
        }
        for (const [name, way] of Object.entries(ways)) try { way(); say(name) } catch (error) { say(error.message) }
        fetch(url).then(() => say("fetched"), (error) => say(error.cause?.message ?? error.message))`)
    const free = yield* visit("")
    assert.include(free, "net")
    assert.isAbove(visitors, 0)
    visitors = 0
    const locked = yield* visit(`const __name = (value) => value; (${lockDown.toString()})()`)
    const ways = locked.split("\n")
    assert.deepStrictEqual(
      ways.slice(0, 5),
      Array.from({ length: 5 }, () => "not allowed here"),
    )
    assert.notInclude(ways, "fetched")
    assert.strictEqual(visitors, 0)
  }),
)
