/**
 * What runs in the process of its own: a program, in a realm that shares no object with it. The text of this function is
 * what that process is started with, so it knows nothing of this file; what it writes are answers, which are not
 * believed but compared with what is expected.
 *
 * The realm is the first wall, and each one behind it holds if those before it fall: code can't be made from text
 * outside of the realm; Node's own connections are taken away; the process has no rights (`--permission`), no
 * variables, little memory, and is killed in time.
 */
export const guest = (lock: () => void): void => {
  "use strict"
  const vm = process.getBuiltinModule("node:vm")
  const { writeSync } = process.getBuiltinModule("node:fs")
  const input = process.stdin
  const chunks: Array<Uint8Array> = []

  /** Evaluated in each realm, before the program: from a value to text, by what was there before the program was. */
  const inRealm = () => {
    const { stringify } = JSON
    const toText = String
    const finite = Number.isFinite
    const then = Promise.prototype.then
    const PromiseOf = Promise
    const call = Function.prototype.call.bind(Function.prototype.call)
    let said: string | undefined
    const plain = (_: string, value: unknown): unknown =>
      typeof value === "bigint" || (typeof value === "number" && !finite(value)) ? toText(value) : value
    const tell = (value: unknown): void => {
      said = `v${stringify(value, plain) ?? toText(value)}`
    }
    const thrown = (error: unknown): void => {
      try {
        said = `t${toText(error)}`
      } catch {
        said = "tsomething that is no text"
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
    return { settle, thrown, said: () => said }
  }

  const mostText = 100_000
  const answer = (index: number, said: { readonly value: string } | { readonly threw: string }): void => {
    writeSync(1, `${JSON.stringify({ index, ...said })}\n`)
  }

  const ofRealm = (text: unknown): { readonly value: string } | { readonly threw: string } => {
    if (typeof text !== "string") return { threw: "a promise that nobody keeps" }
    if (text.length > mostText) return { threw: `an answer of ${text.length} characters; ${mostText} are the most` }
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
      const { settle, thrown, said } = prelude.runInContext(realm)
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
      // What a promise waits for in the realm is done by then: there are no timers in it.
      if (said() === undefined) await nextTurn()
      if (said() === undefined) await nextTurn()
      answer(index, ofRealm(said()))
    }
    writeSync(1, "done\n")
  }

  // A promise that a program drops is no end of the others' tests.
  process.on("unhandledRejection", () => {})
  input.on("data", (chunk: Uint8Array) => chunks.push(chunk))
  input.on("end", () => void main())
}

/** Nothing in a realm leads to Node; if something does one day, there is nothing to find. Its text is used, as the guest's. */
export const lockDown = (): void => {
  const refuse = (): never => {
    throw new Error("not allowed here")
  }
  const barred = (from: object, names: ReadonlyArray<string>): void => {
    for (const name of names) {
      try {
        Object.defineProperty(from, name, { value: refuse, writable: false, configurable: false })
      } catch {
        // What can't be replaced is not there, or frozen.
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
