/** "Play it here" in a real browser: the policy of a trained run acts in the tab, and a person takes over by keyboard. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { effect } from "../../cli/effect.ts"
import { withFolder } from "../folder.ts"
import { inBrowser } from "../inBrowser.ts"
import { plainServer } from "../plainServer.ts"
import { configs } from "./configs.ts"

/** Trains each config in a results folder. */
const train = async (folder: string, names: ReadonlyArray<keyof typeof configs>): Promise<string> => {
  const results = join(folder, "results")
  mkdirSync(results)
  for (const name of names) {
    writeFileSync(join(folder, `${name}.yaml`), configs[name])
    const { code, stderr } = await effect(
      ["run", `${name}.yaml`, "--results-dir", results, "--backend", "wasm", "--quiet"],
      folder,
    )
    assert.strictEqual(code, 0, stderr)
  }
  return results
}

inBrowser("a run's page", ({ page, served, text, count, click }) => {
  const game = "document.querySelector('.game')"
  const actions = (isWanted: string) =>
    page.until(`(${game}.dataset.action ?? "").split(",").every((one) => one !== "" && (${isWanted})(Number(one)))`)
  const open = async (url: string, env: string) => {
    await page.goto(url)
    await page.until("document.querySelector('.runs, .welcome') !== null")
    const { runs } = JSON.parse(String(await page.evaluate("fetch('data/runs.json').then((answer) => answer.text())")))
    const run = runs.find(({ env: name }: { readonly env: string }) => name.startsWith(env))
    await page.goto(`${url}#/run/${String(run.path).split("/").map(encodeURIComponent).join("/")}`)
    await page.until(`${game} !== null && !${game}.parentElement.hidden`)
    await click(".game .controls .button")
    await page.until(`Number(${game}.dataset.steps) > 5`)
    await page.until("document.querySelector('.game iframe')?.dataset.drawn !== undefined")
    assert.include(await text(".game .line"), "The policy acts")
  }
  const takeOver = () =>
    page.evaluate(
      "[...document.querySelectorAll('.game .button')].find((one) => one.textContent === 'Take over').click()",
    )
  const key = (type: string, name: string) =>
    page.evaluate(`${game}.dispatchEvent(new KeyboardEvent("${type}", { key: "${name}", bubbles: true }))`)

  /** Waits for some frames, in which a step that was asked for has ended. */
  const frames = "new Promise((done) => { let left = 40; const next = () => left-- === 0 ? done(true) : requestAnimationFrame(next); next() })" // prettier-ignore

  it("plays the policies of its checkpoints, and lets a person act", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["CartPole", "Pendulum", "GridWorld"])
      await served(results, async (url) => {
        await open(url, "CartPole")
        await takeOver()
        for (const [name, action] of [
          ["ArrowLeft", 0],
          ["ArrowRight", 1],
        ] as const) {
          await key("keydown", name)
          // A held key gives the same action at each of several steps.
          const before = Number(await page.evaluate(`${game}.dataset.steps`))
          await page.until(`Number(${game}.dataset.steps) > ${before + 1}`)
          for (let step = 2; step < 5; step++) {
            await page.until(`Number(${game}.dataset.steps) > ${before + step}`)
            assert.strictEqual(await page.evaluate(`${game}.dataset.action`), String(action))
          }
          await key("keyup", name)
        }
        assert.include(await text(".game .line"), "You act")

        await open(url, "Pendulum")
        await takeOver()
        await key("keydown", "ArrowLeft")
        await actions("(torque) => torque === 2")
        await key("keyup", "ArrowLeft")
        await actions("(torque) => torque === 0")
        await page.evaluate("document.querySelector('.game [type=range]').value = '0.25'")
        await actions("(torque) => torque === -0.5")

        await open(url, "GridWorld")
        await takeOver()
        assert.strictEqual(await text(".game .line"), "You act.")
        // Nothing moves without a key; then each key is one step.
        const steps = () => page.evaluate(`${game}.dataset.steps`).then(Number)
        await page.evaluate(frames)
        const before = await steps()
        await page.evaluate(frames)
        assert.strictEqual(await steps(), before)
        for (const [name, action] of [
          ["ArrowDown", 4],
          ["ArrowRight", 2],
        ] as const) {
          const last = await steps()
          await key("keydown", name)
          await key("keyup", name)
          await page.until(`Number(${game}.dataset.steps) === ${last + 1}`)
          assert.strictEqual(await page.evaluate(`${game}.dataset.action`), String(action))
        }
      })
    }))

  it("simulates bodies by MuJoCo, which the worker gets from the page's server", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["HalfCheetah"])
      await served(results, async (url) => {
        await open(url, "HalfCheetah")
        await page.until(`Number(${game}.dataset.steps) > 40`)
        // The moments between two steps are drawn as well, and the terms of the reward are beside them.
        await page.until(`!${game}.querySelector('iframe').dataset.drawn.endsWith(":0")`)
        assert.match(await text(".game .terms"), /^forward.+ctrl/)
        assert.deepStrictEqual(page.complaints(), [])
      })
    }))

  it("lets a person pull at a body with a pointer, and push it with the arrow keys", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["HalfCheetah"])
      await served(results, async (url) => {
        await page.look(1200, 900)
        await open(url, "HalfCheetah")
        // What the page asks of its worker, and what the worker answers.
        await page.evaluate(
          "(() => { const post = Worker.prototype.postMessage; Worker.prototype.postMessage = function (message) { " +
            "if (this.isSeen !== true) { this.isSeen = true; this.addEventListener('message', ({ data }) => { window.answer = data; window.answers = (window.answers ?? 0) + 1 }) } " +
            "window.asked = message; post.call(this, message) } })()",
        )
        const isAsked = (condition: string) =>
          page.until(`window.asked?._tag === "Act" && ((pull) => ${condition})(asked.pull)`)
        const isShown = (isPulled: boolean) =>
          page.until(`window.answer?.step?.moments?.every((moment) => (moment.pull !== undefined) === ${isPulled})`)
        await isAsked("pull === null")
        await page.evaluate(`${game}.querySelector('iframe').scrollIntoView({ block: "center" })`)
        const area = String(
          await page.evaluate(`JSON.stringify(${game}.querySelector('iframe').getBoundingClientRect())`),
        )
        const { x, y, width, height } = JSON.parse(area)
        const middle = x + width / 2
        /** Presses where the body is: it may have fallen, and a press beside it holds nothing. */
        const pressed = async (press: (at: number) => Promise<unknown>, release: () => Promise<unknown>) => {
          for (let share = 0.45; ; share = share > 0.7 ? 0.3 : share + 0.03) {
            await press(y + height * share)
            await isAsked("pull?._tag === 'Pointer'")
            await page.evaluate("window.answers = 0")
            await page.until("window.answers > 1")
            if ((await page.evaluate("window.answer.step.moments.at(-1).pull !== undefined")) === true) return share
            await release()
            await isAsked("pull === null")
          }
        }
        const share = await pressed(
          (at) => page.mouse("mousePressed", middle, at),
          () => page.mouse("mouseReleased", middle, y),
        )
        // The picture has 480 × 400 units, so that it fills the height of its frame, in the middle.
        await isAsked(
          "pull?._tag === 'Pointer' && Math.abs(pull.at[0] - 240) < 3 && Math.abs(pull.at[1] - " +
            400 * share +
            ") < 3",
        )
        await page.mouse("mouseMoved", middle + (100 * height) / 400, y)
        await isAsked("Math.abs(pull?.at[0] - 340) < 3")
        await page.mouse("mouseReleased", middle, y)
        await isAsked("pull === null")
        await isShown(false)

        await key("keydown", "ArrowUp")
        await isAsked("pull?._tag === 'Push' && pull.right === 0 && pull.up === 1")
        await isShown(true)
        await key("keyup", "ArrowUp")
        await isAsked("pull === null")
        await isShown(false)
        await page.touchScreen(true)
        try {
          await pressed(
            (at) => page.fingers({ id: 1, x: middle, y: at }),
            () => page.fingers(),
          )
          await page.fingers()
          await isAsked("pull === null")
        } finally {
          await page.touchScreen(false)
          await page.look(1200, 800)
        }
      })
    }))

  it("has buttons where there is a touch screen, of which two can be held at once", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["GridWorld"])
      await served(results, async (url) => {
        const shown = () => page.evaluate("getComputedStyle(document.querySelector('.pad')).display")
        const names = () =>
          page.evaluate("[...document.querySelectorAll('.pad button')].map((one) => one.ariaLabel).join()")
        const finger = async (id: number, name: string) => {
          const place = JSON.parse(
            String(
              await page.evaluate(
                `(() => { const one = document.querySelector('.arrow.${name}'); one.parentElement.scrollIntoView({ block: "center" }); const { x, y, width, height } = one.getBoundingClientRect(); return JSON.stringify({ x: x + width / 2, y: y + height / 2 }) })()`, // prettier-ignore
              ),
            ),
          )
          return { id, x: Number(place.x), y: Number(place.y) }
        }
        const steps = () => page.evaluate(`${game}.dataset.steps`).then(Number)

        await open(url, "GridWorld")
        await takeOver()
        assert.strictEqual(await shown(), "none")
        await page.look(500, 900)
        await page.touchScreen(true)
        try {
          assert.strictEqual(await shown(), "grid")
          assert.strictEqual(await names(), "up,left,down,right")
          await page.evaluate(frames)
          const before = await steps()
          const down = await finger(1, "down")
          await page.fingers(down)
          await page.until(`Number(${game}.dataset.steps) === ${before + 1}`)
          assert.strictEqual(await page.evaluate(`${game}.dataset.action`), "4")
          // A second finger beside the first one makes a diagonal step.
          await page.fingers(down, await finger(2, "right"))
          await page.until(`Number(${game}.dataset.steps) === ${before + 2}`)
          assert.strictEqual(await page.evaluate(`${game}.dataset.action`), "3")
          await page.fingers()
          // A screen reader clicks without a finger.
          await page.evaluate("document.querySelector('.arrow.right').click()")
          await page.until(`Number(${game}.dataset.steps) === ${before + 3}`)
          assert.strictEqual(await page.evaluate(`${game}.dataset.action`), "2")
        } finally {
          await page.touchScreen(false)
          await page.look(1200, 800)
        }
      })
    }))

  it("plays bodies in an exported site, which has MuJoCo with its licence", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["HalfCheetah"])
      const exported = await effect(["ui", results, "--export", join(folder, "site")])
      assert.strictEqual(exported.code, 0, exported.stderr)
      assert.notInclude(exported.stdout, "without MuJoCo")
      assert.include(readFileSync(join(folder, "site/play/mujocoLicence.txt"), "utf8"), "Apache License")
      const server = await plainServer(folder)
      try {
        await open(server.url, "HalfCheetah")
        assert.deepStrictEqual(page.complaints(), [])
        // A site that was exported without the package says what to do.
        rmSync(join(folder, "site/play/mujoco.js"))
        await page.goto(String(await page.evaluate("location.href")))
        await page.until(`${game} !== null && !${game}.parentElement.hidden`)
        await click(".game .controls .button")
        await page.until(`${game}.querySelector(".problem").textContent.includes("npm install @mujoco/mujoco@3.14.0")`)
        page.complaints()
      } finally {
        server.close()
      }
    }))

  it("plays in an exported site, which has the newest checkpoint", () =>
    withFolder(async (folder) => {
      const results = await train(folder, ["CartPole"])
      const exported = await effect(["ui", results, "--export", join(folder, "site")])
      assert.strictEqual(exported.code, 0, exported.stderr)
      const server = await plainServer(folder)
      try {
        await open(server.url, "CartPole")
        await count(".game option", 1)
        // Megabytes that no run of this site needs are not in it.
        assert.isFalse(existsSync(join(folder, "site/play/mujoco.js")))
        assert.deepStrictEqual(page.complaints(), [])
      } finally {
        server.close()
      }
    }))
})
