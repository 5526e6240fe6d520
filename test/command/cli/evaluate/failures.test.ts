import { createServer } from "node:net"
import { assert, describe, it } from "vitest"
import { effect, resultOf, withFolder, write } from "../effect.ts"

/** Returns a port on which nothing listens. */
const closedPort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 9))
    })
  })

describe("effect eval with a server that cannot be reached", () => {
  it("fails and says why the episodes failed, unless --max-failures allows it", () =>
    withFolder(async (folder) => {
      const base_url = `http://127.0.0.1:${await closedPort()}/v1`
      write(
        folder,
        "tasks.yaml",
        JSON.stringify({
          dataset: { type: "codebook", num_tasks: 3 },
          agents: { plain: { lm_config: { model: "none", base_url, api_key: "none", max_retries: 0 } } },
        }),
      )
      const play = (...args: ReadonlyArray<string>) => effect(["eval", "tasks.yaml", "--quiet", ...args], folder)
      const failed = await play()
      assert.deepEqual([failed.code, failed.stdout], [1, ""])
      assert.match(failed.stderr, /^effect: 3 of 3 episodes failed: 3 × LmError: .*127\.0\.0\.1:\d+.*\n$/)

      const counted = await play("--json", "--max-failures", "3")
      assert.strictEqual(counted.code, 0, counted.stderr)
      const [first, ...others] = JSON.parse(JSON.stringify(resultOf(counted).failures))
      assert.deepEqual([first.count, others], [3, []])
      assert.match(first.reason, /^LmError: /)
      // The saved result has the same reasons.
      const again = await play("--resume", "latest")
      assert.strictEqual(again.stderr, failed.stderr)

      for (const [most, code] of [
        ["2", 1],
        ["100%", 0],
        ["99.9%", 1],
      ] as const) {
        // prettier-ignore
        assert.strictEqual((await play("--resume", "latest", "--max-failures", most)).code, code, most)
      }
      const refused = await play("--max-failures", "some")
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "a whole number, or a share such as 5%")
    }))
})
