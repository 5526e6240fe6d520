import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EnvError } from "../../../src/base/EnvError.ts"
import { headerSize, status } from "../../../src/spread/programs/Connection.ts"
import { connectTo } from "../../../src/spread/programs/process-node.ts"

/** Sends a request to a program that announces a reply of this length, and returns the error. */
const announcing = (length: number, outcome: number) => {
  const header = Buffer.alloc(headerSize)
  header.writeUInt32LE(length, 0)
  header.writeUInt32LE(outcome, 4)
  const code = `process.stdin.once("data", () => process.stdout.write(Buffer.from("${header.toString("hex")}", "hex")))`
  return Effect.gen(function* () {
    const connection = yield* connectTo("Own-v0", { command: [process.execPath, "-e", code], timeoutSeconds: 20 })(
      "env 0",
    )
    return yield* Effect.callback<string>((resume) =>
      connection.send(Buffer.alloc(1), 100, (reply) =>
        resume(Effect.succeed(reply instanceof EnvError ? reply.message : "a reply")),
      ),
    )
  }).pipe(Effect.scoped)
}

describe("a reply that a program announces", () => {
  it.live("is refused by its length, before it arrives, whether the request succeeded or failed", () =>
    Effect.gen(function* () {
      const most = 2 ** 32 - 1
      assert.include(yield* announcing(most, status.done), `would have ${most} bytes; expected 100 at most`)
      assert.include(yield* announcing(most, status.failed), `would have ${most} bytes; expected 16777216 at most`)
    }),
  )
})

/** Starts a program that replies to each request with an empty body. */
const replying = connectTo("Own-v0", {
  command: [
    process.execPath,
    "-e",
    `process.stdin.on("data", () => process.stdout.write(Buffer.alloc(${headerSize})))`,
  ],
})

describe("a caller that cannot use a reply", () => {
  it.live("gets an error as well, so that it does not wait for ever", () =>
    Effect.gen(function* () {
      const connection = yield* replying("env 0")
      const message = yield* Effect.callback<string>((resume) =>
        connection.send(Buffer.alloc(1), 100, (reply) => {
          if (!(reply instanceof EnvError)) throw new RangeError("no such env")
          resume(Effect.succeed(reply.message))
        }),
      )
      assert.strictEqual(message, "Own-v0: the process of env 0 sent a reply that cannot be used: no such env")
    }).pipe(Effect.scoped),
  )

  it.effect("is told by an EnvError if the program lacks an environment variable", () =>
    Effect.gen(function* () {
      const connect = connectTo("Own-v0", { command: [process.execPath], variables: ["EFFECT_RL_NO_SUCH_VARIABLE"] })
      const { message } = yield* Effect.flip(connect("env 0"))
      assert.include(message, "the environment variable EFFECT_RL_NO_SUCH_VARIABLE is not set")
    }).pipe(Effect.scoped),
  )
})
