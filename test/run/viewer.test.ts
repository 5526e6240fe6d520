/**
 * RLtools' own viewer over what real runs left. It is no part of this project: RL_TOOLS_EXTRACK_UI names the folder
 * `static/extrack_ui` of a copy of rl-tools/rl-tools, and without one its tests are skipped.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { fromPath } from "../../src/run/identifier.ts"
import { runsIn } from "../command/cli/crash.ts"
import { effect, program, withFolder, write } from "../command/cli/effect.ts"
import { type Browser, chromium, launch } from "../command/ui/chromium.ts"
import { type HttpServer, startHttp } from "../servers/listen.ts"
import { found } from "./store/found.ts"

const viewer = process.env.RL_TOOLS_EXTRACK_UI
const lacking =
  viewer === undefined
    ? "RL_TOOLS_EXTRACK_UI does not name RLtools' viewer"
    : chromium === undefined
      ? "no chromium here (CHROMIUM names one)"
      : undefined
if (lacking !== undefined) console.warn(`RLtools' viewer is not tried: ${lacking}`)

const results = mkdtempSync(join(tmpdir(), "effect-rl-viewer-"))

beforeAll(() =>
  withFolder(async (folder) => {
    const settings = "validation: { everySteps: 1024, episodes: 2 }, render: { everySteps: 1024, episodes: 2 }"
    const words = ["--population", "algorithm=a2c,ppo", "--seeds", "1..2", "--jobs", "2", "--name", "zoo"]
    const file = write(folder, "train.ts", program(settings))
    const outcome = await effect(["run", file, ...words, "--results-dir", results, "--quiet"])
    assert.strictEqual(outcome.code, 0, outcome.stderr)
  }),
)
afterAll(() => rmSync(results, { recursive: true }))

describe("the index of a sweep", () => {
  it("lists every file, and what there is beside the runs is read there", { tags: "slow" }, async () => {
    const index = (): string => readFileSync(join(results, "index.txt"), "utf8")
    assert.strictEqual(index(), found(results))
    // RLtools' viewer stops at a file that is in no run's folder.
    for (const line of index().trim().split("\n")) assert.isAbove(line.split("/").length, 5, line)
    const configurations = new Set(runsIn(results).map((run) => join(run, "..")))
    assert.strictEqual(configurations.size, 2)
    for (const configuration of configurations) {
      const metrics = JSON.parse(readFileSync(join(configuration, "metrics.json"), "utf8"))
      assert.strictEqual(metrics.score.runs, 2)
    }
    const [run] = runsIn(results)
    rmSync(join(run, "steps"), { recursive: true })
    const outcome = await effect(["eval", run, "--render"])
    assert.strictEqual(outcome.code, 0, outcome.stderr)
    assert.strictEqual(index(), found(results))
  })
})

/** The viewer loads this library from the Internet; here, Node does what the viewer needs of it. */
const pako = `
export const ungzip = (bytes) => {
  const request = new XMLHttpRequest()
  request.open("POST", "/gunzip", false)
  request.send(bytes)
  if (request.status !== 200) throw new Error("gunzip: " + request.status)
  return request.responseText
}
`

const page = `<!doctype html><link rel="icon" href="data:,"><body>`

/** Files as they are, as any static server has them. */
const serve = (folders: Readonly<Record<string, string>>): Promise<HttpServer> =>
  startHttp((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname)
    const [, top, ...rest] = path.split("/")
    const file = join(folders[top] ?? "", rest.join("/"))
    if (path === "/gunzip") {
      const parts: Array<Uint8Array> = []
      request.on("data", (part: Uint8Array) => parts.push(part))
      request.on("end", () => response.end(gunzipSync(Buffer.concat(parts))))
    } else if (path === "/pako.js") response.writeHead(200, { "content-type": "text/javascript" }).end(pako)
    else if (path === "/") response.writeHead(200, { "content-type": "text/html" }).end(page)
    else if (folders[top] === undefined || !existsSync(file)) response.writeHead(404).end()
    else if (top === "ui") {
      const text = readFileSync(file, "utf8").replace(/https:\/\/\S*\/pako@[^'"]*/, "/pako.js")
      response.writeHead(200, { "content-type": "text/javascript" }).end(text)
    } else {
      const type = file.endsWith(".js") ? "text/javascript" : "application/octet-stream"
      response.writeHead(200, { "content-type": type }).end(readFileSync(file))
    }
  })

describe.skipIf(lacking !== undefined)("RLtools' viewer", () => {
  let browser: Browser
  let server: HttpServer
  beforeAll(async () => {
    browser = await launch(chromium ?? "")
    server = await serve({ ui: viewer ?? "", results })
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  const refresh = `(async () => {
    const { Index } = await import("/ui/Index.js")
    const { StaticFileSystem } = await import("/ui/StaticFileSystem.js")
    return (window.index = await new Index(new StaticFileSystem("/results/")).refresh())
  })()`

  it("finds every run, with its identifier and its steps' files", async () => {
    const { page } = browser
    await page.goto(`${server.url}/`)
    const seen = await page.evaluate(`${refresh}.then(({ run_list }) => run_list.map(({ config, steps, ...run }) => ({
      config, ui: run.ui_jsm, evaluations: run.return, steps: Object.values(steps).map(
        ({ step, checkpoint_code, checkpoint_hdf5, trajectories_compressed }) =>
          ({ step, files: [checkpoint_code, checkpoint_hdf5, trajectories_compressed] })),
    })))`)
    const expected = runsIn(results).map((run) => {
      const { time, commit, name, population = {}, seed = 0 } = fromPath(run) ?? {}
      const at = run.replace(results, "/results")
      return {
        config: {
          experiment: time,
          commit,
          name,
          population_variates: Object.keys(population).join("_"),
          population_values: Object.values(population).join("_"),
          population,
          seed: String(seed).padStart(4, "0"),
        },
        ui: `${at}/ui.esm.js`,
        evaluations: `${at}/return.json`,
        steps: readdirSync(join(run, "steps")).map((step) => ({
          step,
          files: ["checkpoint.h", "checkpoint.h5", "trajectories.json.gz"].map((file) => `${at}/steps/${step}/${file}`),
        })),
      }
    })
    assert.sameDeepMembers(Array.isArray(seen) ? seen : [seen], expected)
    assert.strictEqual(expected.length, 4)
    assert.strictEqual(expected[0].config.name, "zoo")
    // The listed files exist.
    for (const { ui, steps, evaluations } of expected) {
      for (const file of [ui, evaluations, ...steps.flatMap(({ files }) => files)]) {
        assert.isTrue(existsSync(file.replace("/results", results)), file)
      }
      assert.isAtLeast(steps.length, 1)
    }
  })

  it("plays an episode of each population, in pictures that move", async () => {
    const { page } = browser
    await page.goto(`${server.url}/`)
    for (const algorithm of ["a2c", "ppo"]) {
      await page.evaluate(`(async () => {
        const { TrajectoryPlayer } = await import("/ui/TrajectoryPlayer.js")
        const run = (await ${refresh}).run_list.find(({ config }) => config.population.algorithm === "${algorithm}")
        const player = new TrajectoryPlayer(run.ui_jsm, 200)
        document.body.replaceChildren(player.getCanvas())
        window.pictures = new Set()
        await player.playTrajectories(Object.values(run.steps).at(-1).trajectories_compressed)
      })()`)
      await page.until(`(() => {
        const canvas = document.querySelector("canvas")
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
        if (canvas.width !== 200 || new Set(new Uint32Array(pixels.buffer)).size < 4) return false
        window.pictures.add(canvas.toDataURL())
        return window.pictures.size >= 5
      })()`)
      assert.match(
        String(await page.evaluate("document.body.textContent")),
        /Step: [1-9]\d*, Return(?: \(avg\))?: [1-9]/,
      )
    }
    assert.deepStrictEqual(page.complaints(), [])
  })
})
