/** Checks how much of a run's files is read for its episodes, and what they may hold. */
import { execFileSync } from "node:child_process"
import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { type Confined, confinedTo } from "../../../../src/run/read/confined-node.ts"
import { detailOf } from "../../../../src/command/ui/detail.ts"
import { openResults } from "../../../../src/command/ui/results-node.ts"
import { says } from "../../../../src/command/ui/transcripts/Episode.ts"
import { pageAsked } from "../../../../src/command/ui/transcripts/pageAsked.ts"
import { makeTranscripts } from "../../../../src/command/ui/transcripts/transcripts.ts"
import type { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as Rollouts from "../../../../src/agents/episode/rollouts/Rollouts.ts"
import * as Samples from "../../../../src/agents/episode/samples/samples.ts"
import { withFolder, write } from "../folder.ts"
import { rolloutOf, sampleOf } from "../rollouts.ts"

/** The transcripts below a folder, and how much was read of each file since that was asked last. */
const watched = async (folder: string) => {
  const files = await Effect.runPromise(confinedTo(folder))
  let read = new Map<string, number>()
  const part: Confined["part"] = (path, from, most) =>
    Effect.map(files.part(path, from, most), (found) => {
      read.set(path, (read.get(path) ?? 0) + (found?.length ?? 0))
      return found
    })
  const text: Confined["text"] = (path) => {
    read.set(path, read.get(path) ?? 0)
    return files.text(path)
  }
  const { page, one } = makeTranscripts({ ...files, part, text })
  const transcripts = { one: (run: string, key: string) => Effect.runPromise(one(run, key)) }
  const since = (): ReadonlyMap<string, number> => {
    const before = read
    read = new Map()
    return before
  }
  const found = async (text: string) => {
    const asked = pageAsked(new URLSearchParams({ text }))
    assert.isDefined(asked)
    return (await Effect.runPromise(page("r", asked))).episodes.map(({ id }) => id)
  }
  return { transcripts, since, found }
}

const file = "r/rollouts.jsonl"
const line = (id: string, said = "yes"): string => Rollouts.line(rolloutOf(id, { said }))

describe("a run's files", () => {
  it("are looked through for samples once, not for every transcript", () =>
    withFolder(async (folder) => {
      const samples = "r/samples.jsonl"
      const [a, b, c] = ["a", "b", "c"].map((id) => rolloutOf(id))
      const worth = (rollout: Rollout, credit: number): string =>
        Samples.line(sampleOf(rollout, { inputIds: [8], actionMask: [1], credit }))
      write(folder, file, [a, b, c].map(Rollouts.line).join(""))
      write(folder, samples, [a, b, c, a].map((rollout) => worth(rollout, 2)).join(""))
      const { transcripts, since } = await watched(folder)
      const largest = async (key: string) => (await transcripts.one("r", key))?.largest
      assert.strictEqual(await largest("rollouts-1"), 2)
      since()
      assert.strictEqual(await largest("rollouts-2"), 2)
      // The last line is read too: by it a file that was written anew is recognised.
      assert.strictEqual(since().get(samples), worth(b, 2).length + worth(a, 2).length)
      appendFileSync(join(folder, samples), worth(c, -5))
      assert.strictEqual(await largest("rollouts-3"), 5)
      // Written anew, it lies elsewhere.
      writeFileSync(join(folder, samples), worth(b, 1) + worth(a, 3))
      assert.strictEqual(await largest("rollouts-1"), 3)
      assert.isNull(await largest("rollouts-3"))
    }))

  it("of calls are looked for only where there are any", () =>
    withFolder(async (folder) => {
      const steps = Array.from({ length: 50 }, (_, step_index) => ({
        timestamp: "2026-01-31T12:00:00.000Z",
        mode: "train",
        episode_index: 1,
        step_index,
        score: 0,
        episode_cum_score: 0,
        env_id: "e",
        env_type: "e",
        agent_type: "a",
      }))
      write(folder, "r/scores/train/scores.jsonl", steps.map((step) => `${JSON.stringify(step)}\n`).join(""))
      const { transcripts, since } = await watched(folder)
      assert.strictEqual((await transcripts.one("r", "train-1"))?.played.length, 50)
      assert.isEmpty([...since().keys()].filter((path) => path.includes("llm_calls")))
    }))

  it("may be written anew to the length that they had", () =>
    withFolder(async (folder) => {
      write(folder, file, line("a") + line("b"))
      const { found } = await watched(folder)
      assert.deepStrictEqual(await found(""), ["a", "b"])
      writeFileSync(join(folder, file), line("c") + line("d"))
      assert.deepStrictEqual(await found(""), ["c", "d"])
    }))

  it("may have letters as their numbers, as other programs write them", () =>
    withFolder(async (folder) => {
      const plain = (text: string): string =>
        text.replace(/[\u0080-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)
      write(folder, file, plain(line("a", "Grüße") + line("b", "grusse")))
      assert.deepStrictEqual(await (await watched(folder)).found("grüße"), ["a"])
    }))

  it("may hold lists in lists that are deeper than a stack", () => {
    const deep: unknown = JSON.parse(`${"[".repeat(100_000)}"here"${"]".repeat(100_000)}`)
    assert.isTrue(says({ deep }, "here"))
    assert.isFalse(says({ deep }, "there"))
  })

  it("are listed up to so many, and the others not even looked at", () =>
    withFolder(async (folder) => {
      write(folder, file, line("a"))
      write(folder, "r/rollouts/train/rollouts.jsonl", "")
      for (let call = 0; call < 5010; call++) write(folder, `r/llm_calls/train/actions/${call}.json`, "")
      const results = await Effect.runPromise(openResults(folder))
      await Effect.runPromise(results.index.refresh)
      const [summary] = results.index.runs()
      let sizes = 0
      const size: Confined["size"] = (path) => {
        sizes++
        return results.files.size(path)
      }
      const { files } = await Effect.runPromise(detailOf({ ...results, files: { ...results.files, size } }, summary))
      assert.lengthOf(files, 5000)
      assert.strictEqual(sizes, 5000)
      // Calls lie deeper than whatever else there is.
      assert.includeMembers(files.map(({ path }) => path), ["rollouts.jsonl", "rollouts/train/rollouts.jsonl"]) // prettier-ignore
    }))

  it("that are pipes are none, and nobody waits for them", () =>
    withFolder(async (folder) => {
      execFileSync("mkfifo", [join(folder, "config.yaml")])
      assert.isUndefined(await Effect.runPromise(Effect.flatMap(confinedTo(folder), ({ text }) => text("config.yaml"))))
    }))

  it("of rollouts are news when they grow, whether or not scores do", () =>
    withFolder(async (folder) => {
      const rollouts = "r/rollouts/train/rollouts.jsonl"
      write(folder, "r/config.yaml", "name: r\n")
      write(folder, rollouts, line("a"))
      const { index } = await Effect.runPromise(openResults(folder))
      await Effect.runPromise(index.refresh)
      appendFileSync(join(folder, rollouts), line("b"))
      assert.deepStrictEqual(
        (await Effect.runPromise(index.refresh)).changed.map(({ path }) => path),
        ["r"],
      )
    }))
})

describe("the page", () => {
  it("asks for an episode of whatever name below its run alone", async () => {
    const { fetchTranscript }: { fetchTranscript: (run: string, key: string) => Promise<unknown> } = await import(
      new URL("../../../../src/command/ui/page/data.js", import.meta.url).href
    )
    const before = globalThis.fetch
    const asked: Array<unknown> = []
    try {
      globalThis.fetch = async (address) => {
        asked.push(address)
        return new Response("{}")
      }
      await fetchTranscript("a/b", "../../../../files/x/evil")
    } finally {
      globalThis.fetch = before
    }
    assert.deepStrictEqual(asked, ["data/run/a/b/episodes/..%2F..%2F..%2F..%2Ffiles%2Fx%2Fevil.json"])
  })
})
