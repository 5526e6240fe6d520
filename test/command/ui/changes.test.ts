import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { assert, describe, it } from "vitest"
import { serve, type PageServerOptions } from "../../../src/command/ui/server-node.ts"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { makeRun, withFolder, write } from "./folder.ts"

// The page's modules are plain scripts, and what this one computes needs no browser.
const { csvOf } = await import(
  /* @vite-ignore */ new URL("../../../src/command/ui/page/parts/csv.js", import.meta.url).href
)

const changeToken = "token-for-changes"
const json = { "content-type": "application/json" }
const shown = { ...json, "x-effect-changes": changeToken }

interface Served {
  readonly results: string
  /** Sends a change, and returns the status and the text of the answer. */
  readonly change: (
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<{ readonly status: number; readonly text: string }>
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Response>
}

const served = (options: Partial<PageServerOptions>, body: (served: Served) => Promise<void>) =>
  withFolder(async (folder) => {
    const results = join(folder, "results")
    mkdirSync(results)
    const scope = await Effect.runPromise(Scope.make())
    const all = { directory: results, host: "127.0.0.1", port: 0, pollEvery: 1, changeToken, ...options }
    const { port } = await Effect.runPromise(Scope.provide(serve(all), scope))
    const at = (path: string) => `http://127.0.0.1:${port}/${path}`
    const get: Served["get"] = (path, headers = {}) => fetch(at(path), { headers })
    const change: Served["change"] = async (sent, headers = shown) => {
      // The server lists runs before it is asked to change them, as for the page.
      await (await get("data/runs.json", headers)).text()
      const text = typeof sent === "string" ? sent : JSON.stringify(sent)
      const response = await fetch(at("data/change"), { method: "POST", headers, body: text })
      return { status: response.status, text: await response.text() }
    }
    try {
      await body({ results, change, get })
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })

describe("the page's changes of runs", () => {
  it("write labels, which the page then shows, and delete", () =>
    served({}, async ({ results, change, get }) => {
      const run = makeRun(results)
      const labels = { title: "Baseline", note: "a note", addTags: ["b", "a"], archived: true }
      assert.deepEqual(await change({ run, labels }), { status: 200, text: "{}" })
      assert.deepEqual(JSON.parse(readFileSync(join(results, run, "labels.json"), "utf8")), {
        title: "Baseline",
        note: "a note",
        tags: ["a", "b"],
        archived: true,
      })
      let found: unknown
      while (JSON.stringify(found)?.includes("Baseline") !== true) {
        const listed = JSON.parse(await (await get("data/runs.json", shown)).text())
        assert.isTrue(listed.canChange)
        found = listed.runs[0]
      }
      assert.deepInclude(found, { title: "Baseline", tags: ["a", "b"], archived: true, name: "tune" })
      const detail = JSON.parse(await (await get(`data/run/${run}/run.json`)).text())
      assert.strictEqual(detail.note, "a note")
      assert.strictEqual((await change({ run, delete: true })).status, 200)
      assert.isFalse(existsSync(join(results, run)))
    }))

  it("need the token of the printed address, whatever else a request shows", () =>
    served({ token: "token-to-look" }, async ({ results, change, get }) => {
      const run = makeRun(results)
      const bearer = { ...json, authorization: "Bearer token-to-look" }
      const deletion = { run, delete: true }
      assert.strictEqual((await change(deletion, shown)).status, 401)
      assert.strictEqual((await change(deletion, bearer)).status, 403)
      assert.strictEqual((await change(deletion, { ...bearer, "x-effect-changes": "wrong" })).status, 403)
      const asCookie = { ...bearer, cookie: `x-effect-changes=${changeToken}; effect-ui-changes=${changeToken}` }
      assert.strictEqual((await change(deletion, asCookie)).status, 403)
      const both = { ...bearer, "x-effect-changes": changeToken }
      assert.strictEqual((await change(deletion, { ...both, origin: "https://other.example" })).status, 403)
      assert.strictEqual((await change(deletion, { ...both, "content-type": "text/plain" })).status, 415)
      assert.isFalse(JSON.parse(await (await get("data/runs.json", bearer)).text()).canChange)
      assert.isTrue(existsSync(join(results, run)))
      assert.strictEqual((await change(deletion, both)).status, 200)
    }))

  it("are refused by a server that only shows runs", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      const run = makeRun(results)
      await Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const { port } = yield* serve({ directory: results, host: "127.0.0.1", port: 0 })
            const send = (headers: Record<string, string>) =>
              Effect.promise(() =>
                fetch(`http://127.0.0.1:${port}/data/change`, {
                  method: "POST",
                  headers,
                  body: JSON.stringify({ run, delete: true }),
                }),
              )
            for (const headers of [
              json,
              shown,
              { ...json, "x-effect-changes": "" },
              { ...json, "x-effect-changes": "undefined" },
            ])
              assert.strictEqual((yield* send(headers)).status, 403)
          }),
        ),
      )
      assert.isTrue(existsSync(join(results, run)))
    }))

  it("are refused for anything but a run of the folder, and say what is wrong", () =>
    served({}, async ({ results, change }) => {
      const run = makeRun(results)
      write(join(results, ".."), "secret/config.yaml", "env: x\n")
      symlinkSync(join(results, "../secret"), join(results, "link"))
      for (const path of ["", "..", "../secret", "link", `${run}/..`, `${run}/checkpoints`, run.split("/")[0], "none"])
        assert.strictEqual((await change({ run: path, delete: true })).status, 404, path)
      for (const wrong of ["{", "[]", { run }, { run, delete: false }, { run, labels: { addTags: "a" } }, { run: 1 }]) {
        const { status } = await change(wrong)
        // A request without a change changes nothing.
        assert.strictEqual(status, JSON.stringify(wrong) === JSON.stringify({ run }) ? 200 : 400, JSON.stringify(wrong))
      }
      assert.strictEqual((await change({ run, labels: { note: "x".repeat(300_000) } })).status, 413)
      const tag = await change({ run, labels: { addTags: ["two words"] } })
      assert.deepEqual([tag.status, tag.text.includes("tag: expected a word")], [409, true])
      write(results, `${run}/run.lock`, ownerName(process.ppid))
      const held = await change({ run, delete: true })
      assert.strictEqual(held.status, 409)
      assert.include(held.text, "is writing this run")
      assert.notInclude(held.text, results)
      assert.isTrue(existsSync(join(results, run)))
      assert.isTrue(existsSync(join(results, "../secret/config.yaml")))
    }))
})

describe("a table as a file", () => {
  it("has plain numbers, and no text that a spreadsheet would compute", () => {
    const rows = [
      ["a", "b, c", 'd "e"'],
      ["1,234.5", "–", "  two\n words "],
      ["-12", "+1.5", "-1,000"],
      ["=1+1", "@x", "-x"],
      [0.1 + 0.2, null, undefined],
    ]
    assert.deepEqual(csvOf(rows).split("\r\n"), [
      'a,"b, c","d ""e"""',
      "1234.5,,two words",
      "-12,+1.5,-1000",
      "'=1+1,'@x,'-x",
      "0.30000000000000004,,",
      "",
    ])
  })
})
