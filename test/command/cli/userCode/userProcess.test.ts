import { assert, describe, it } from "vitest"
import { importing } from "../../../../src/command/cli/userCode/userProcess.ts"

describe("while a module is imported", () => {
  it("nothing listens to signals, so that they end a process that is busy; afterwards all is as before", async () => {
    const before = [process.listeners("SIGINT"), process.listeners("SIGTERM")]
    const own = (): void => {}
    process.on("SIGINT", own)
    try {
      const during = await importing(async () => [process.listenerCount("SIGINT"), process.listenerCount("SIGTERM")])
      assert.deepEqual(during, [0, 0])
      assert.deepEqual([process.listeners("SIGINT"), process.listeners("SIGTERM")], [[...before[0], own], before[1]])
    } finally {
      process.removeListener("SIGINT", own)
    }
  })

  it("no signal is lost that came before, even if the event loop has not turned since", async () => {
    let heard = 0
    const own = (): void => void heard++
    process.on("SIGTERM", own)
    try {
      for (const turn of [Promise.resolve(), new Promise((resolve) => setImmediate(resolve))]) {
        heard = 0
        await turn
        process.kill(process.pid, "SIGTERM")
        assert.strictEqual(await importing(async () => heard), 1)
      }
    } finally {
      process.removeListener("SIGTERM", own)
    }
  })

  it("an error gives the listeners back, too", async () => {
    const own = (): void => {}
    process.on("SIGTERM", own)
    try {
      const error = await importing(() => Promise.reject(new Error("no such module"))).catch(
        (thrown: unknown) => thrown,
      )
      assert.include(String(error), "no such module")
      assert.include(process.listeners("SIGTERM"), own)
    } finally {
      process.removeListener("SIGTERM", own)
    }
  })
})
