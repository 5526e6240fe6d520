/**
 * Runs an untrusted program and its tests, in a separate process. `runner-node.ts` starts the process with the text of the
 * function `guest`, so this function refers to nothing else in this file. It reads a program and its tests from stdin, and
 * writes the answers to stdout. For each test, the program runs in a new realm (a JavaScript global environment that shares
 * no object with the process). The answers are not trusted, only compared with the expected values. Before the program runs,
 * `lock` (`lockDown` below) is called.
 *
 * The realm is the first barrier. If a program escapes from it, there are others: no code can be made from text; Node's
 * internal bindings are removed; the process has no permissions (`--permission`), no environment variables and little memory,
 * and is killed after a time limit.
 */
// oxlint-disable-next-line max-lines-per-function -- its text is sent to another process, whole
export const guest = (lock: () => void): void => {
  "use strict"
  const vm = process.getBuiltinModule("node:vm")
  const { writeSync } = process.getBuiltinModule("node:fs")
  const input = process.stdin
  const chunks: Array<Uint8Array> = []

  /**
   * Runs in each realm before the program. It keeps references to the built-in functions that it uses, because the program
   * could replace them. The result of a test is a text: `v` and the value as JSON, or `t` and the exception.
   */
  const inRealm = () => {
    const { stringify } = JSON
    const toText = String
    const finite = Number.isFinite
    const then = Promise.prototype.then
    const PromiseOf = Promise
    const call = Function.prototype.call.bind(Function.prototype.call)
    let settled: string | undefined
    const plain = (_: string, value: unknown): unknown =>
      typeof value === "bigint" || (typeof value === "number" && !finite(value)) ? toText(value) : value
    const tell = (value: unknown): void => {
      settled = `v${stringify(value, plain) ?? toText(value)}`
    }
    const thrown = (error: unknown): void => {
      try {
        settled = `t${toText(error)}`
      } catch {
        settled = "ta value without a text form"
      }
    }
    const settle = (value: unknown): void => {
      try {
        if (value instanceof PromiseOf) call(then, value, settle, thrown)
        else tell(value)
      } catch (error) {
        thrown(error)
      }
    }
    return { settle, thrown, settled: () => settled }
  }

  const mostText = 100_000
  const answer = (index: number, settled: { readonly value: string } | { readonly threw: string }): void => {
    writeSync(1, `${JSON.stringify({ index, ...settled })}\n`)
  }

  const ofRealm = (text: unknown): { readonly value: string } | { readonly threw: string } => {
    if (typeof text !== "string") return { threw: "a promise that never settles" }
    if (text.length > mostText) return { threw: `an answer of ${text.length} characters; expected at most ${mostText}` }
    return text.startsWith("v") ? { value: text.slice(1) } : { threw: text.slice(1, 1000) }
  }

  const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  const main = async (): Promise<void> => {
    const { program, runs } = JSON.parse(Buffer.concat(chunks).toString("utf8"))
    const compile = (text: string, filename: string) => new vm.Script(text, { filename })
    const prelude = compile(`(${inRealm.toString()})()`, "prelude.js")
    let body: InstanceType<typeof vm.Script> | undefined
    let wrong = ""
    try {
      body = compile(program, "program.js")
    } catch (error) {
      wrong = String(error)
    }
    lock()
    writeSync(1, "ready\n")
    for (let index = 0; index < runs.length; index++) {
      if (body === undefined) {
        answer(index, { threw: wrong })
        continue
      }
      const realm = vm.createContext(vm.constants.DONT_CONTEXTIFY)
      const { settle, thrown, settled } = prelude.runInContext(realm)
      let expression: InstanceType<typeof vm.Script>
      try {
        expression = compile(`(${runs[index]}\n)`, "test.js")
      } catch (error) {
        answer(index, { threw: String(error) })
        continue
      }
      try {
        body.runInContext(realm)
        settle(expression.runInContext(realm))
      } catch (error) {
        thrown(error)
      }
      // A realm has no timers, so a promise that can settle does so within two turns of the event loop.
      if (settled() === undefined) await nextTurn()
      if (settled() === undefined) await nextTurn()
      answer(index, ofRealm(settled()))
    }
    writeSync(1, "done\n")
  }

  // A rejected promise that a program does not handle must not end the process, which has more tests to run.
  process.on("unhandledRejection", () => {})
  input.on("data", (chunk: Uint8Array) => chunks.push(chunk))
  input.on("end", () => void main())
}

/**
 * Removes everything from the process that a program could use if it escaped from its realm, e.g. Node's internal bindings.
 * Like `guest`, this function is sent to the process as text, so it refers to nothing in this file.
 */
export const lockDown = (): void => {
  const refuse = (): never => {
    throw new Error("not allowed here")
  }
  const barred = (from: object, names: ReadonlyArray<string>): void => {
    for (const name of names) {
      try {
        Object.defineProperty(from, name, { value: refuse, writable: false, configurable: false })
      } catch {
        // A property that cannot be replaced is missing or frozen, so ignore the error.
      }
    }
  }
  const net = process.getBuiltinModule("node:net")
  const dgram = process.getBuiltinModule("node:dgram")
  const dns = process.getBuiltinModule("node:dns")
  barred(net.Socket.prototype, ["connect"])
  barred(net.Server.prototype, ["listen"])
  barred(dgram.Socket.prototype, ["bind", "connect", "send"])
  barred(dns, Object.keys(dns))
  barred(dns.promises, Object.keys(dns.promises))
  barred(process, ["binding", "dlopen", "kill", "getBuiltinModule", "exit", "reallyExit", "abort", "chdir", "_kill"])
  barred(globalThis, ["fetch", "WebSocket", "EventSource", "require", "eval", "Function"])
  Object.defineProperty(globalThis, "process", { value: undefined })
}
