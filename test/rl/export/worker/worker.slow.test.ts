import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { jsonSchema } from "../../../../src/base/config/jsonSchema.ts"
import { observationSchema } from "../../../../src/rl/export/worker/observationSchema.ts"
import { serveInWorkerd, type Served, workerd } from "../../../bundle/workerd.ts"
import { root } from "../../../command/cli/effect.ts"
import { exported, type Exported, type Kind } from "./exported.ts"

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const folder = mkdtempSync(join(root, ".tmp-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ask = async (url: string, init: RequestInit = {}): Promise<Answer> => {
  const response = await fetch(url, init)
  const text = await response.text()
  assert.strictEqual(response.headers.get("content-type"), "application/json")
  // One line, whatever is wrong.
  assert.match(text, /^[^\n]*\n$/)
  return { status: response.status, body: JSON.parse(text) }
}

const act = (url: string, body: unknown): Promise<Answer> =>
  ask(`${url}/act`, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) })

/** The actions of an answer as Node saved them: a list of numbers each. */
const listed = (actions: unknown): ReadonlyArray<unknown> =>
  Array.isArray(actions) ? actions.map((action: unknown) => (Array.isArray(action) ? action : [action])) : []

/** Divides a list into lists of `size`. */
const groups = <A>(list: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: list.length / size }, (_, index) => list.slice(index * size, (index + 1) * size))

describe.skipIf(workerd === undefined)("an exported worker in workerd", () => {
  for (const kind of ["ppo", "lstm", "sac", "dqn"] as const satisfies ReadonlyArray<Kind>) {
    describe(kind, () => {
      const remembers = kind === "lstm"
      let made: Exported
      let served: Served
      beforeAll(async () => {
        made = await exported(folder, kind)
        served = await serveInWorkerd(made.folder)
      })
      afterAll(() => served?.stop())

      it("answers 1,000 observations with the actions that Node chose, to the bit", async () => {
        assert.isAtLeast(made.episodes.flat().length, 1000)
        const steps = Math.max(...made.episodes.map((episode) => episode.length))
        // All episodes go on in one batch, each with its memory.
        const memories: Array<unknown> = made.episodes.map(() => null)
        for (let step = 0; step < steps; step++) {
          const going = [...made.episodes.keys()].filter((index) => step < made.episodes[index].length)
          const observations = going.map((index) => made.episodes[index][step].observation)
          const recalled = remembers && step > 0 ? { memories: going.map((index) => memories[index]) } : {}
          const { status, body } = await act(served.url, { observations, ...recalled })
          assert.strictEqual(status, 200, JSON.stringify(body))
          assert.deepStrictEqual(
            listed(body.actions),
            going.map((index) => made.episodes[index][step].action),
          )
          const next = body.memories
          assert.strictEqual(Array.isArray(next), remembers)
          if (Array.isArray(next)) for (const [at, index] of going.entries()) memories[index] = next[at]
        }
      })

      it("answers a single observation, also nested", async () => {
        let memory: unknown = undefined
        for (const { observation, action } of made.episodes[0]) {
          const nested = kind === "dqn" ? groups(groups(observation, 10), 10) : observation
          const { status, body } = await act(served.url, { observation: nested, memory })
          assert.strictEqual(status, 200, JSON.stringify(body))
          assert.deepStrictEqual(listed([body.action]), [action])
          memory = body.memory
        }
      })

      it("answers with the policy's card", async () => {
        const { status, body } = await ask(`${served.url}/`)
        assert.strictEqual(status, 200)
        assert.deepInclude(body, { step: 1024, algorithm: kind === "lstm" ? "ppo" : kind })
        const shapes = { ppo: [4], lstm: [4], sac: [3], dqn: [4, 10, 10] }
        const shape = shapes[kind]
        assert.deepStrictEqual(body.observation, { shape, schema: jsonSchema(observationSchema(shape)), parts: null })
      })
    })
  }

  describe("with a wrong request", () => {
    let served: Served
    beforeAll(async () => {
      served = await serveInWorkerd(join(folder, "lstm-worker"))
    })
    afterAll(() => served?.stop())

    const four = [0, 0, 0, 0]
    const wrong: ReadonlyArray<readonly [unknown, RegExp]> = [
      [{ observation: [0, 0, 0] }, /^observation: expected 4 numbers, found 3 elements$/],
      [{ observation: [0, null, 0, 0] }, /^observation\[1\]: expected a finite number, found null$/],
      ['{"observation": [0, NaN, 0, 0]}', /^body: expected JSON/],
      ["{", /^body: expected JSON/],
      ["", /^body: expected JSON/],
      ["[]", /^body: expected an object/],
      ["null", /^body: expected an object/],
      [{}, /^body: expected observation \(and memory, mask\), or observations \(and memories, masks\)$/],
      [{ observation: four, observations: [four] }, /^body: expected observation/],
      [{ observation: four, memories: [[]] }, /^body: expected observation/],
      [
        { observatoin: four },
        /^body: unknown key "observatoin"; expected observation, memory, mask, observations, memories, masks$/,
      ],
      [{ observations: four }, /^observations\[0\]: expected 4 numbers, found 0$/],
      [{ observations: 4 }, /^observations: expected an array$/],
      [{ observations: [four, [1]] }, /^observations\[1\]: expected 4 numbers, found 1 element$/],
      [{ observation: four, memory: [1] }, /^memory: expected \d+ numbers, found 1 element$/],
      [{ observations: [four], memories: [] }, /^memories: expected an array of 1, one for each observation$/],
      [
        { observations: [four], memories: { length: 1 } },
        /^memories: expected an array of 1, one for each observation$/,
      ],
      [{ observation: four, mask: [1, 0] }, /^mask: this policy takes no action mask; leave it out$/],
      [{ observations: [four], masks: [[1, 0]] }, /^masks\[0\]: this policy takes no action mask; leave it out$/],
      [{ observations: [four], masks: [] }, /^masks: expected an array of 1, one for each observation$/],
      [{ observations: [four], memories: [["x"]] }, /^memories\[0\]: expected \d+ numbers, found 1 element$/],
    ]
    for (const [body, message] of wrong) {
      it(`refuses ${typeof body === "string" ? body || "an empty body" : JSON.stringify(body)}`, async () => {
        const answer = await act(served.url, body)
        assert.strictEqual(answer.status, 400)
        assert.match(String(answer.body.error), message)
      })
    }

    it("refuses bytes that are no text", async () => {
      const answer = await ask(`${served.url}/act`, { method: "POST", body: Uint8Array.of(0xff, 0xfe) })
      assert.deepStrictEqual(answer, { status: 400, body: { error: "body: expected UTF-8 text" } })
    })

    it("refuses a body at the first byte that is too many, without waiting for its end, and goes on", async () => {
      const limit = 4 * 1024 * 1024
      // No more is sent until the answer is here: what a connection still sends when it is closed can lose the answer.
      const endless = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new Uint8Array(limit).fill(0x20))
          controller.enqueue(Uint8Array.of(0x20))
        },
      })
      const request = new AbortController()
      const streamed: RequestInit & { readonly duplex: "half" } = {
        method: "POST",
        body: endless,
        duplex: "half",
        signal: request.signal,
      }
      const error = `body: expected at most ${limit} bytes`
      assert.deepStrictEqual(await ask(`${served.url}/act`, streamed), { status: 413, body: { error } })
      request.abort()
      assert.strictEqual((await act(served.url, { observation: four })).status, 200)
    })

    it("refuses other methods and paths", async () => {
      assert.strictEqual((await ask(`${served.url}/act`)).status, 405)
      assert.strictEqual((await ask(`${served.url}/`, { method: "POST", body: "{}" })).status, 405)
      assert.deepStrictEqual(await ask(`${served.url}/other`), {
        status: 404,
        body: { error: "expected GET / or POST /act" },
      })
    })
  })

  it("takes under 60 KiB compressed for CartPole, weights and scripts together", () => {
    const files = ["policy.wasm", "policy.js", "card.js", "worker.js"]
    const sizes = files.map((file) => gzipSync(readFileSync(join(folder, "ppo-worker", file)), { level: 9 }).length)
    const total = sizes.reduce((sum, size) => sum + size, 0)
    assert.isBelow(total, 60 * 1024)
  })
})
