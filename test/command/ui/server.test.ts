import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { type IncomingMessage, request } from "node:http"
import { createConnection } from "node:net"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Exit, Scope } from "effect"
import { assert, describe, it } from "vitest"
import { command } from "../../../src/command/cli/command.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import { serve, type PageServerOptions } from "../../../src/command/ui/server-node.ts"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import { confinedTo } from "../../../src/run/read/confined-node.ts"
import { effect, until } from "../cli/effect.ts"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"
import { rolloutOf } from "./rollouts.ts"
import { makeTrainer, writeRun } from "./trainer.ts"

interface Got {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly text: string
}

type Ask = (path: string, headers?: Record<string, string>, method?: string, body?: string) => Promise<Got>

/** A server over `folder/results`, beside which lies `folder/secret.txt`. */
const served = (options: Partial<PageServerOptions>, body: (ask: Ask, folder: string, port: number) => Promise<void>) =>
  withFolder(async (folder) => {
    const directory = join(folder, "results")
    mkdirSync(directory)
    writeFileSync(join(folder, "secret.txt"), "secret")
    const scope = await Effect.runPromise(Scope.make())
    const started = serve({ directory, host: "127.0.0.1", port: 0, pollEvery: 50, ...options })
    const { port } = await Effect.runPromise(Scope.provide(started, scope))
    // Paths go out as they are written here: fetch would tidy them up.
    const ask: Ask = (path, headers = {}, method = "GET", sent) =>
      new Promise((resolve, reject) => {
        const asked = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
          let text = ""
          response.on("data", (chunk) => (text += String(chunk)))
          response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
        })
        asked.on("error", reject)
        asked.end(sent)
      })
    try {
      await body(ask, folder, port)
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })

interface Change {
  readonly changed: ReadonlyArray<{ readonly path: string; readonly steps: number }>
  readonly gone: ReadonlyArray<string>
}

/** Listens to the changes of runs. */
const listen = async (port: number) => {
  let isListening = false
  const heard: Array<Change> = []
  const listening = request({ host: "127.0.0.1", port, path: "/data/events" }, (response) => {
    assert.strictEqual(response.headers["content-type"], "text/event-stream")
    isListening = true
    response.on("data", (chunk) => {
      for (const [, data] of String(chunk).matchAll(/^data: (.*)$/gm)) heard.push(JSON.parse(data))
    })
    response.on("error", () => undefined)
  })
  listening.on("error", () => undefined)
  listening.end()
  await until(() => isListening)
  return { heard, listening }
}

/** The list of runs, when the server has seen as many: it looks again and again. */
const listed = async (
  ask: Ask,
  count: number,
): Promise<{ readonly runs: ReadonlyArray<unknown>; readonly live: boolean }> => {
  for (;;) {
    const list = JSON.parse((await ask("/data/runs.json")).text)
    if (list.runs.length >= count) return list
    await pause()
  }
}

/** Between two looks at what changes by itself. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 25))

const json = { "content-type": "application/json" }

describe("the server", () => {
  it("serves a single run, and says what the page calls it", () =>
    withFolder(async (folder) => {
      const directory = join(folder, makeRun(folder, { seed: 7 }))
      const serving = Effect.scoped(serve({ directory, host: "127.0.0.1", port: 0 }))
      assert.deepInclude(await Effect.runPromise(serving), { run: "0007" })
    }))

  it("says whether the folder is that of a multi-run trainer", () =>
    withFolder(async (folder) => {
      const isTrainer = (path: string) => {
        const serving = serve({ directory: join(folder, path), host: "127.0.0.1", port: 0 })
        return Effect.runPromise(Effect.scoped(Effect.flatMap(serving, (at) => at.isTrainer)))
      }
      const trainer = makeTrainer(folder)
      const run = writeRun(folder, trainer, "a")
      assert.deepStrictEqual([await isTrainer(trainer), await isTrainer(run), await isTrainer(makeRun(folder))], [true, false, false]) // prettier-ignore
    }))

  it("gives episodes a page at a time, and the one that is asked for; what can't be is refused", () =>
    served({ token: "0123456789" }, async (ask, folder) => {
      const lines = Array.from({ length: 250 }, (_, at) => Rollouts.line(rolloutOf(`e-${at}`, { reward: at })))
      write(join(folder, "results"), "r/rollouts.jsonl", lines.join(""))
      const secret = { authorization: "Bearer 0123456789" }
      const get = (path: string) => ask(path, secret)
      // The server looks at its folder again and again; until it has seen the run, there is none.
      while ((await get("/data/run/r/episodes.json")).status === 404) await pause()
      const page = async (query: string) => {
        const { matching, episodes } = JSON.parse((await get(`/data/run/r/episodes.json?${query}`)).text)
        return [matching, episodes.map(({ key }: { key: string }) => key)]
      }
      assert.deepStrictEqual(await page("from=248&count=5"), [250, ["rollouts-249", "rollouts-250"]])
      assert.deepStrictEqual(await page("least=100&text=env%20of%20E-13&count=2"), [
        10,
        ["rollouts-131", "rollouts-132"],
      ])
      const { played } = JSON.parse((await get("/data/run/r/episodes/rollouts-7.json")).text)
      assert.deepStrictEqual([played.id, played.return], ["e-6", 6])
      assert.strictEqual((await get("/data/run/r/episodes.json?from=-1")).status, 400)
      assert.strictEqual((await get("/data/run/r/episodes/rollouts-251.json")).status, 404)
      assert.strictEqual((await get("/data/run/r/episodes/..%2f..%2fsecret.json")).status, 404)
      assert.strictEqual((await get("/data/run/other/episodes.json")).status, 404)
      for (const path of ["/data/run/r/episodes.json", "/data/run/r/episodes/rollouts-7.json"])
        assert.strictEqual((await ask(path)).status, 401)
    }))

  it("gives what a cluster is doing only to those with the token, and without a cluster nothing", async () => {
    const observed = { database: "postgres://rl@db/rl", problem: "connection refused", overview: null, age: 0 }
    const cluster = Effect.succeed(observed)
    await served({ token: "0123456789", cluster }, async (ask) => {
      const secret = { authorization: "Bearer 0123456789" }
      assert.strictEqual((await ask("/data/cluster.json")).status, 401)
      assert.deepStrictEqual(JSON.parse((await ask("/data/cluster.json", secret)).text), observed)
      assert.isTrue(JSON.parse((await ask("/data/runs.json", secret)).text).hasCluster)
    })
    await served({}, async (ask) => {
      assert.strictEqual((await ask("/data/cluster.json")).status, 404)
      assert.isFalse(JSON.parse((await ask("/data/runs.json")).text).hasCluster)
    })
  })

  it("gives the page, the runs, their curves, bands and files", () =>
    served({}, async (ask, folder) => {
      const results = join(folder, "results")
      const [one, two] = [1, 2].map((seed) => makeRun(results, { seed, name: "50 % öl" }))
      assert.include((await ask("/")).text, "main.js")
      assert.strictEqual((await ask("/main.js")).headers["content-type"], "text/javascript; charset=utf-8")
      const { runs, live } = await listed(ask, 2)
      assert.deepStrictEqual([runs.length, live], [2, true])
      const place = one.split("/").map(encodeURIComponent).join("/")
      assert.strictEqual(JSON.parse((await ask(`/data/run/${place}/curves.json`)).text).train.mean.length, 50)
      const detail = JSON.parse((await ask(`/data/run/${place}/run.json`)).text)
      assert.include(detail.files.map(({ path }: { path: string }) => path), "scores/train/scores.jsonl") // prettier-ignore
      assert.lengthOf(detail.validations, 2)
      // A run counts once, however often it is named.
      const asked = JSON.stringify({
        runs: [one, two, "no such run", one, two, two],
        measure: "validation",
        axis: "steps",
      })
      const band = JSON.parse((await ask("/data/bands", json, "POST", asked)).text)
      assert.deepStrictEqual([band.runs, band.mean], [[2, 2], [50, 100]]) // prettier-ignore
      const file = await ask(`/files/${place}/config.yaml`)
      assert.include(file.text, "CartPole-v1")
      assert.strictEqual((await ask(`/files/${place}/config.yaml`, {}, "HEAD")).text, "")
    }))

  it("gives the page of a run whose folder or config is named with a line break", () =>
    served({}, async (ask, folder) => {
      const results = join(folder, "results")
      const runs = [makeRun(results, { name: "a\nb" }), "of somebody\nelse"]
      write(results, `${runs[1]}/config.yaml`, 'name: "two\\nlines"\n')
      write(results, `${runs[1]}/notes\n.txt`, "a note")
      await listed(ask, 2)
      for (const run of runs) {
        const place = run.split("/").map(encodeURIComponent).join("/")
        for (const what of ["run", "curves", "metrics", "episodes"]) {
          assert.strictEqual((await ask(`/data/run/${place}/${what}.json`)).status, 200, `${place} ${what}`)
        }
      }
      assert.strictEqual((await ask("/files/of%20somebody%0Aelse/notes%0A.txt")).text, "a note")
    }))

  it("serves nothing that lies elsewhere, however it is asked", () =>
    served({}, async (ask, folder, port) => {
      const results = join(folder, "results")
      const run = makeRun(results)
      write(folder, "outside/config.yaml", "env: secret\n")
      symlinkSync(join(folder, "secret.txt"), join(results, "link.txt"))
      symlinkSync(folder, join(results, "up"))
      symlinkSync(join(folder, "secret.txt"), join(results, run, "notes.txt"))
      const ways = [
        "/files/../secret.txt",
        "/files/%2e%2e/secret.txt",
        "/files/..%2fsecret.txt",
        "/files/..%5csecret.txt",
        "/files/%2e%2e%2fsecret.txt",
        "/files/x/../../secret.txt",
        `/files/${run}/../../../../../secret.txt`,
        `/files${folder}/secret.txt`,
        `/files/${encodeURIComponent(`${folder}/secret.txt`)}`,
        "/files/link.txt",
        "/files/up/secret.txt",
        `/files/${run}/notes.txt`,
        "/files/secret.txt%00.json",
        "/../secret.txt",
        "/%2e%2e/server-node.ts",
        "/data/run/../secret.txt/run.json",
        "/data/run/..%2f..%2foutside/run.json",
        "/data/run/up/outside/run.json",
        "//files/../secret.txt",
        "http://elsewhere/files/../secret.txt",
        "/files/%zz",
        "/files/",
        "/files",
      ]
      for (const way of ways) {
        const { status, text } = await ask(way)
        assert.oneOf(status, [400, 404, 421], way)
        assert.notInclude(text, "secret", way)
      }
      // A path that is no address at all, over a bare connection.
      const raw = await new Promise<string>((resolve) => {
        const socket = createConnection(port, "127.0.0.1", () =>
          socket.end("GET files/../../secret.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        )
        let text = ""
        socket.on("data", (chunk) => (text += String(chunk)))
        socket.on("close", () => resolve(text))
      })
      assert.notInclude(raw, "secret")
      assert.strictEqual((await ask(`/files/${run}/config.yaml`)).status, 200)
    }))

  it("answers to its own names only", () =>
    served({}, async (ask) => {
      assert.strictEqual((await ask("/", { host: "localhost:1" })).status, 200)
      for (const path of ["/", "/data/runs.json", "/main.js"]) {
        assert.strictEqual((await ask(path, { host: "evil.example" })).status, 421, path)
        assert.strictEqual((await ask(path, { origin: "http://evil.example" })).status, 403, path)
      }
    }))

  it("answers to a name that its user allows", () =>
    served({ allowedHosts: ["runs.example.org"] }, async (ask) => {
      assert.strictEqual((await ask("/data/runs.json", { host: "runs.example.org" })).status, 200)
      assert.strictEqual((await ask("/data/runs.json", { host: "evil.example" })).status, 421)
    }))

  it("gives the player's frame, which has no origin, its script, and nothing else", () =>
    served({}, async (ask) => {
      const origin = { origin: "null" }
      assert.strictEqual((await ask("/player/frame.js", origin)).status, 200)
      assert.strictEqual((await ask("/player/frame.js", { ...origin, host: "evil.example" })).status, 421)
      for (const path of [
        "/",
        "/main.js",
        "/data/runs.json",
        "/files/player/frame.js",
        "/player/frame.js/../../data/runs.json",
      ]) {
        assert.strictEqual((await ask(path, origin)).status, 403, path)
      }
    }))

  it("lets nothing run but its own scripts, and nothing at all of a run's files", () =>
    served({}, async (ask, folder) => {
      const run = makeRun(join(folder, "results"))
      write(
        folder,
        `results/${run}/steps/1/episode.svg`,
        "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
      )
      write(folder, `results/${run}/ui.esm.js`, "alert(1)")
      const page = String((await ask("/")).headers["content-security-policy"])
      assert.include(page, "default-src 'none'; script-src 'self';")
      assert.notInclude(page, "unsafe")
      assert.include(page, "frame-ancestors 'none'")
      const frame = String((await ask("/player/frame.html")).headers["content-security-policy"])
      assert.match(frame, /sandbox allow-scripts$/)
      assert.notInclude(frame, "connect-src")
      const svg = await ask(`/files/${run}/steps/1/episode.svg`)
      assert.match(String(svg.headers["content-security-policy"]), /^default-src 'none'.* sandbox$/)
      assert.strictEqual((await ask(`/files/${run}/ui.esm.js`)).headers["content-type"], "text/plain; charset=utf-8")
      for (const path of ["/", "/data/runs.json", `/files/${run}/run.log`, "/nothing"]) {
        assert.strictEqual((await ask(path)).headers["x-content-type-options"], "nosniff", path)
      }
      for (const name of ["evil.html", "evil.xhtml", "evil.xml", "evil.mht", "evil.mjs", "evil.pdf", "evil"]) {
        write(folder, `results/${run}/${name}`, "<script>1</script>")
        const { headers } = await ask(`/files/${run}/${name}`)
        assert.match(String(headers["content-security-policy"]), /^default-src 'none'.* sandbox$/, name)
        assert.deepStrictEqual(
          [headers["content-type"], headers["content-disposition"], headers["x-content-type-options"]],
          ["application/octet-stream", "attachment", "nosniff"],
          name,
        )
      }
      const markup = (await ask("/")).text
      assert.notMatch(markup, /<script(?![^>]*src=)|\son[a-z]+=|style=/)
    }))

  it("gives data only to those who show the token, and the page to all", () =>
    served({ token: "0123456789abcdef" }, async (ask, folder) => {
      const run = makeRun(join(folder, "results"))
      assert.strictEqual((await ask("/")).status, 200)
      const wants = [
        "/data/runs.json",
        "/data/events",
        `/files/${run}/config.yaml`,
        `/data/run/${run}/run.json`,
        "/nothing",
      ]
      for (const path of wants) {
        assert.strictEqual((await ask(path)).status, 401, path)
        assert.strictEqual((await ask(path, { cookie: "effect-ui-token=wrong" })).status, 401, path)
      }
      assert.strictEqual((await ask("/data/bands", json, "POST", "{}")).status, 401)
      const entered = await ask("/?token=0123456789abcdef")
      assert.deepStrictEqual([entered.status, entered.headers.location], [303, "./"])
      const [cookie] = entered.headers["set-cookie"] ?? []
      assert.match(String(cookie), /; HttpOnly; SameSite=Strict$/)
      assert.strictEqual((await ask("/data/runs.json", { cookie: String(cookie).split(";")[0] })).status, 200)
      assert.strictEqual((await ask("/data/runs.json", { authorization: "Bearer 0123456789abcdef" })).status, 200)
      assert.isUndefined((await ask("/?token=0123456789abcdeX")).headers["set-cookie"])
    }))

  it("refuses what it doesn't understand", () =>
    served({}, async (ask) => {
      const answers = await Promise.all([
        ask("/data/bands", json, "POST", "{"),
        ask("/data/bands", json, "POST", `{"runs":[],"measure":"bogus","axis":"steps"}`),
        ask("/data/bands", { "content-type": "text/plain" }, "POST", `{"runs":[],"measure":"train"}`),
        ask("/data/bands", json, "POST", `{"runs":["${"x".repeat(2 ** 20)}"],"measure":"train","axis":"steps"}`),
        ask("/data/bands", { ...json, "transfer-encoding": "chunked" }, "POST", `["${"x".repeat(2 ** 21)}"]`),
        ask("/data/bands", json, "POST", `${"[".repeat(1000)}${"]".repeat(1000)}`),
        ask("/data/runs.json", {}, "DELETE"),
        ask("/data/run/nothing/run.json"),
        ask("/data/constructor.json"),
      ])
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [400, 400, 415, 413, 413, 400, 405, 404, 404],
      )
    }))

  it("ends while it waits for the files of the runs, also for a request that was broken off", async () => {
    let looks = 0
    let ended = 0
    await withFolder(async (folder) => {
      // A bucket that gives no answer.
      const refresh = Effect.callback<void>(() => {
        looks++
        return Effect.sync(() => void ended++)
      })
      const files = { ...(await Effect.runPromise(confinedTo(folder))), refresh }
      await served({ files }, async (_, __, port) => {
        await until(() => looks === 1)
        const asked = request({ host: "127.0.0.1", port, path: "/data/runs.json", agent: false })
        asked.on("error", () => undefined).end()
        await new Promise((resolve) => asked.once("socket", (socket) => socket.once("connect", resolve)))
        asked.destroy()
        await pause()
        assert.deepStrictEqual([looks, ended], [1, 0])
      })
    })
    assert.deepStrictEqual([looks, ended], [1, 1])
  })

  it("ends the request of a client that hangs up before the first byte", async () => {
    let asked = 0
    let ended = 0
    const cluster = Effect.suspend(() => {
      asked++
      return Effect.onInterrupt(Effect.never, () => Effect.sync(() => void ended++))
    })
    await served({ cluster }, async (_, __, port) => {
      const asking = request({ host: "127.0.0.1", port, path: "/data/cluster.json" })
      asking.on("error", () => undefined)
      asking.end()
      await until(() => asked === 1)
      asking.destroy()
      await until(() => ended === 1)
    })
  })

  it("goes on looking for changes after something went wrong at the start", () =>
    withFolder(async (folder) => {
      let looks = 0
      const refresh = Effect.suspend(() => (looks++ === 0 ? Effect.die("no memory") : Effect.void))
      const files = { ...(await Effect.runPromise(confinedTo(folder))), refresh }
      await served({ files }, async (_, __, port) => {
        await until(() => looks > 0)
        const { heard, listening } = await listen(port)
        const run = makeRun(folder)
        await until(() => heard.some(({ changed }) => changed.some(({ path }) => path === run)))
        listening.destroy()
      })
    }))

  it("tells those who listen what has changed", () =>
    served({}, async (ask, folder, port) => {
      const results = join(folder, "results")
      const run = makeRun(results, {}, { finished: false })
      await listed(ask, 1)
      const { heard, listening } = await listen(port)
      appendFileSync(join(results, run, "scores/train/scores.jsonl"), scoreLine(4000, 5, 50))
      await until(() => heard.some(({ changed }) => changed.some(({ path, steps }) => path === run && steps === 4000)))
      const other = makeRun(results, { seed: 2 })
      await until(() => heard.some(({ changed }) => changed.some(({ path }) => path === other)))
      listening.destroy()
    }))
})

/** Returns what the command writes to stderr until it serves. */
const warningsOf = (folder: string): Promise<string> =>
  Effect.gen(function* () {
    const serving = yield* Deferred.make<undefined>()
    let written = ""
    const stderr = (text: string): void => {
      written += text
      if (text.startsWith("serving")) Deferred.doneUnsafe(serving, Exit.succeed(undefined))
    }
    yield* command(["ui", folder, "--port", "0"]).pipe(
      Effect.provideService(Output, { stdout: () => Effect.void, stderr }),
      Effect.provide(NodeServices.layer),
      Effect.raceFirst(Deferred.await(serving)),
    )
    return written
  }).pipe(Effect.runPromise)

describe("effect ui", () => {
  it("says in a line what is wrong", async () => {
    await withFolder(async (folder) => {
      // Also where there are runs, of whose paths it could be a part.
      makeRun(join(folder, "results"))
      for (const path of ["/no/such/folder", "./no", "../no"]) {
        const missing = await effect(["ui", path], folder)
        assert.deepStrictEqual([missing.code, missing.stderr], [2, `effect: ${path}: there is no such folder\n`])
      }
      const weak = await effect(["ui", folder, "--token", "short"])
      assert.deepStrictEqual(
        [weak.code, weak.stderr],
        [2, "effect: --token: expected at least 8 letters, digits, - or _\n"],
      )
    })
  })

  it("warns that a folder has no runs yet, and serves it", () =>
    withFolder(async (folder) => {
      assert.include(await warningsOf(folder), `no runs in ${folder} yet`)
      makeRun(folder)
      assert.notInclude(await warningsOf(folder), "no runs")
    }))
})
