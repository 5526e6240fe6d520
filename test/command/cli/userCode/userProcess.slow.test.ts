import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { listen } from "../../../servers/listen.ts"
import { type Started, start, until, withFolder, write } from "../effect.ts"

const training = (more: string): string => `import { CartPole, Env, Ppo, Space, Train } from "effect-rl"
import { existsSync, readdirSync, statSync, writeFileSync, writeSync } from "node:fs"
const isRunning = () => existsSync("results") && readdirSync("results", { recursive: true }).some((path) => path.endsWith("scores.jsonl") && statSync("results/" + path).size > 0)
${more}
`

const long = "export default Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 1e9 })"

const stuckEnv = `const env = Env.make({
  id: "Stuck-v0", observationSpace: Space.box(-1, 1, [1]), actionSpace: Space.discrete(2),
  reset: () => 0, observe: () => [0], step: (state) => { writeFileSync("stuck", ""); for (;;) {} },
})`

/** Waits until a process has said something. */
const said = ({ child }: Started, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let heard = ""
    child.stderr?.on("data", (chunk) => {
      heard += String(chunk)
      if (heard.includes(text)) resolve()
    })
    child.once("close", () => reject(new Error(`it ended, and said only: ${heard}`)))
  })

describe("code of the user's that doesn't behave", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it(`that never comes to the end of its import is ended by ${signal}`, () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", training(`writeSync(2, "begun\\n")\nfor (;;) {}\n${long}`))
        const started = start(["run", file], folder)
        await said(started, "begun")
        started.child.kill(signal)
        assert.strictEqual((await started.ended).signal, signal)
      }))
  }

  const throwing = {
    "in a timer": `setInterval(() => { if (isRunning()) throw new Error("boom") }, 50)`,
    "in a promise that was dropped": `setInterval(() => isRunning() && void Promise.reject(new Error("boom")), 50)`,
  }
  for (const [where, code] of Object.entries(throwing)) {
    it(`that throws ${where} has its run saved, and is named in one line`, () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", training(`${code}\n${long}`))
        const { code: exit, stderr } = await start(["run", file, "--quiet"], folder).ended
        const line = stderr.trim().split("\n").at(-1) ?? ""
        assert.match(line, /^effect: \S+train\.ts:4:\d+: Error: boom; nothing could catch it/)
        assert.strictEqual(exit, 1)
        const files = readdirSync(join(folder, "results"), { recursive: true, encoding: "utf8" })
        assert.isTrue(
          files.some((path) => path.endsWith("checkpoints/latest.json")),
          stderr,
        )
      }))
  }

  it("that has a timer left lets the command end when the run has ended", () =>
    withFolder(async (folder) => {
      const short =
        "export default Train.run({ env: CartPole.env, algorithm: Ppo.make({ nsteps: 32 }), totalSteps: 256 })"
      const file = write(folder, "train.ts", training(`setInterval(() => {}, 1000)\n${short}`))
      const { code, stdout } = await start(["run", file, "--quiet", "--json"], folder).ended
      assert.strictEqual(code, 0)
      assert.include(stdout, "digest")
    }))

  it("whose step never returns in a run of a sweep ends with the sweep, even if that was killed", () =>
    withFolder(async (folder) => {
      // The connection is closed by the system when the run's process ends.
      const server = createServer()
      const connected = once(server, "connection")
      const port = await listen(server)
      const code = `import { connect } from "node:net"
import { once } from "node:events"
// The sweep imports this file, too; only a run of it has a channel.
if (process.connected) await once(connect(${port}, "127.0.0.1"), "connect")
${stuckEnv}
export default Train.run({ env, algorithm: Ppo.make(), totalSteps: 1000 })`
      const file = write(folder, "train.ts", training(code))
      const started = start(["run", file, "--seeds", "1", "--population", "num_envs=2,4", "--jobs", "1"], folder)
      const [socket]: ReadonlyArray<Socket> = await connected
      const ended = once(socket, "close")
      socket.resume()
      await until(() => existsSync(join(folder, "stuck")))
      started.child.kill("SIGKILL")
      await ended
      server.close()
      assert.strictEqual((await started.ended).signal, "SIGKILL")
    }))

  it("whose step never returns is named, and lets Ctrl-C end the process", () =>
    withFolder(async (folder) => {
      const run = "export default Train.run({ env, algorithm: Ppo.make(), totalSteps: 1000 })"
      const file = write(folder, "train.ts", training(`${stuckEnv}\n${run}`))
      const started = start(["run", file, "--quiet"], folder)
      await said(started, "seconds; Ctrl-C now ends the run without saving it")
      started.child.kill("SIGINT")
      const { signal, stderr } = await started.ended
      assert.match(stderr, /^effect: \S+train\.ts:6:\d+: it has not returned for \d+ seconds;/)
      assert.strictEqual(signal, "SIGINT")
    }))
})
