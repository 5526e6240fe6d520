/** Transcripts in a real browser: of runs of the runtime, of functions that are called, and of a tree of delegations. */
import { execFileSync } from "node:child_process"
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import { bytes } from "../../../src/base/tokens/words.ts"
import { root } from "../cli/effect.ts"
import { withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { callStep, envStep, rolloutOf, sampleOf } from "./rollouts.ts"
import { calendarRun, namingRun } from "./talk.ts"

const rows = "document.querySelectorAll('.episodeList a')"
const titles = `[...${rows}].map((row) => row.querySelector('.what').textContent)`
const transcript = "document.querySelector('.transcript')"
const turns = `[...document.querySelectorAll('.transcript > .turn')]`

const addressOf = (run: string, more = ""): string => `#/run/${run.split("/").map(encodeURIComponent).join("/")}${more}`

inBrowser("transcripts", ({ page, served, text, count, click, set }) => {
  const shows = (title: string) =>
    page.until(`${transcript}?.querySelector('h3')?.textContent === ${JSON.stringify(title)}`)

  it("of a run are listed, found, read, and gone through by keys; the address says where", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url + addressOf(run))
        await count(".episodeList a", 20)
        assert.strictEqual(await text(".talk .count"), "20 episodes")
        assert.include(await text(".transcript"), "Choose an episode")
        await click(".episodeList a[data-key=train-2]")
        await shows("train-2")
        assert.deepStrictEqual(await page.evaluate(`${turns}.map((turn) => turn.querySelector('h4').textContent)`), [
          "Turn 1",
          "Turn 2",
          "Looking back",
        ])
        const first = String(await page.evaluate(`${turns}[0].textContent`))
        for (const part of [
          "reward 0",
          "so far 0",
          "seesWhat is [1] called?",
          "I don't know.",
          `The target is "name-7".`,
        ])
          assert.include(first, part)
        assert.match(
          String(await page.evaluate(`${turns}[1].textContent`)),
          /reward \+1so far 1.*The episode was terminated/,
        )
        assert.match(await text(".transcript .facts"), /model's calls3tokens168 in, 8 out/)

        // The prompt is there when it is asked for.
        assert.notInclude(first, "user")
        await page.evaluate(`${turns}[0].querySelector('details').open = true`)
        await page.until(`${turns}[0].querySelector('.prompt')?.textContent.includes('What is [1] called?') === true`)

        await page.press("j")
        await page.press("j")
        assert.strictEqual(await page.evaluate("document.querySelector('.turn.current h4').textContent"), "Turn 2")
        await page.press("k")
        await page.press("k")
        assert.strictEqual(await page.evaluate("document.querySelector('.turn.current h4').textContent"), "Turn 1")
        await page.press("j")
        await page.until("location.hash.includes('episode=train-2&turn=2')")
        const link = String(await page.evaluate("location.href"))
        await page.press("J")
        await shows("train-3")
        await page.press("K")
        await shows("train-2")
        await page.goto(link)
        await shows("train-2")
        await page.until("document.querySelector('.turn.current')?.dataset.turn === '2'")
        assert.isBelow(
          Math.abs(Number(await page.evaluate("document.querySelector('.turn.current').getBoundingClientRect().top"))),
          300,
        )
        assert.strictEqual(await page.evaluate(`document.querySelector('[aria-current]').dataset.key`), "train-2")
        // Another theme draws the charts anew, and moves neither the focus nor the window.
        await page.evaluate("document.querySelector('.find').focus(), scrollTo(0, 0)")
        await page.look(1280, 900, "dark")
        await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert.deepStrictEqual(await page.evaluate("[document.activeElement.className, scrollY]"), ["find", 0])
        await page.look(1280, 900)

        await set(".talk select", "val12")
        await page.until(`${rows}.length === 4`)
        await page.until("location.hash.includes('phase=val12')")
        await set(".talk select", "")
        await set(".find", "NAMING-10")
        await page.until("document.querySelector('.talk .count').textContent === '1 of 20 episodes'")
        assert.deepStrictEqual(await page.evaluate(titles), ["train 11 naming-10"])
        await set(".find", "")
        await set(".bound", "2")
        await page.until(`${rows}.length === 0`)
        assert.include(await text(".episodeNav"), "None of the episodes is like that.")
        // The open episode stays open, whatever is listed.
        await shows("train-2")
      })
    }))

  it("without rollouts are what scores and calls' files say, and say what is missing", () =>
    withFolder(async (folder) => {
      const calls = await namingRun(join(folder, "calls"), { saveRollouts: false, logCalls: true })
      const scores = await namingRun(join(folder, "scores"), { saveRollouts: false, verbose: false })
      await served(join(folder, "calls"), async (url) => {
        await page.goto(url + addressOf(calls, "?episode=train-1"))
        await shows("naming-0")
        assert.match(await text(".transcript"), /says.*I don't know\..*reflects/s)
      })
      await served(join(folder, "scores"), async (url) => {
        await page.goto(url + addressOf(scores, "?episode=train-1"))
        await page.until(`${transcript}?.textContent.includes('Only scores were kept') === true`)
        assert.deepStrictEqual(await page.evaluate(`${turns}.map((turn) => turn.querySelector('h4').textContent)`), [
          "Turn 1",
          "Turn 2",
        ])
      })
    }))

  it("of functions that are called have the calls, their results, and who gave them", () =>
    withFolder(async (folder) => {
      const run = await calendarRun(folder)
      await served(folder, async (url) => {
        await page.goto(url + addressOf(run, "?episode=train-2"))
        await shows("train-2")
        const tools = JSON.parse(String(await page.evaluate("JSON.stringify([...document.querySelectorAll('.tool')].map((one) => one.textContent))"))) // prettier-ignore
        assert.strictEqual(tools.length, 3)
        assert.strictEqual(
          tools[0],
          `calls externalcancel_event({"id":99})failed: There is no event with the id 99; list_events says which there are.`,
        )
        assert.match(tools[1], /^calls externaladd_event\(.*gave: \{"id":5\}$/)
        // Only this one failed.
        await count(".result.bad", 1)
      })
    }))

  it("of the delegation example have its sub-agents' rollouts, their credit, and tokens by advantage", () =>
    withFolder(async (folder) => {
      execFileSync(process.execPath, ["examples/agents/delegation.ts", join(folder, "delegation")], { cwd: root })
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await page.goto(`${url}#/run/delegation`)
        await click(".episodeList a").catch(() =>
          page.until(`${rows}.length === 1`).then(() => click(".episodeList a")),
        )
        await shows("larger")
        const children = "[...document.querySelectorAll('.transcript .child > summary')].map((one) => one.textContent)"
        assert.deepStrictEqual(await page.evaluate(children), [
          "calculator larger/sub/0, 1 step, terminated credit: own 0parent's +1half and half +0.5in the samples +0.5",
          "calculator larger/sub/1, 1 step, terminated credit: own 0parent's +1half and half +0.5in the samples +0.5",
        ])
        // Below the call that delegated.
        assert.include(
          await page.evaluate("document.querySelector('.child').closest('.call').textContent"),
          `delegate({"agent":"calculator","task":"17 x 23"})`,
        )
        assert.include(await text(".legend"), "tokens by advantage (credit × weight) -1-0.50+0.5+1")
        const tokens = "[...document.querySelectorAll('.said .token:not(.rest)')].map((one) => [one.textContent, one.className, one.title])" // prettier-ignore
        assert.deepStrictEqual(await page.evaluate(tokens), [
          ["I have them multiplied.", "token up4", "23 tokens (78 37 109 102 123 106 37 121 109 106 114 37 …), advantage +1, log-probability 0"], // prettier-ignore
          ["391", "token up2", "3 tokens (56 62 54), advantage +0.5, log-probability 0"],
          ["399", "token up2", "3 tokens (56 62 62), advantage +0.5, log-probability 0"],
          ["399", "token up4", "3 tokens (56 62 62), advantage +1, log-probability 0"],
        ])
        const back = (one: string) =>
          page.evaluate(`getComputedStyle(document.querySelector('${one}')).backgroundColor`)
        for (const scheme of ["light", "dark"] as const) {
          await page.look(1280, 900, scheme)
          const colors = new Set([await back(".said .up4"), await back(".said .up2"), await back(".legend .down4"), await back(".legend .none")]) // prettier-ignore
          assert.strictEqual(colors.size, 4)
        }
      })
    }))

  it("colour each token by itself where that is known, and say without colour what is bad", () =>
    withFolder(async (folder) => {
      const one = rolloutOf("a", { said: "good bad", steps: [callStep("a", 0, { said: "good bad" }), envStep("a", 1)] })
      const foreign = rolloutOf("b", { said: "unknown tokens" })
      const inputIds = bytes.encode("good bad")
      const sample = sampleOf(one, {
        inputIds,
        actionMask: inputIds.map(() => 1),
        advantages: inputIds.map((_, at) => (at < 5 ? 0.5 : -2)),
      })
      const other = sampleOf(foreign, { inputIds: [1001, 1002], actionMask: [1, 1], advantages: [0, -1] })
      const third = rolloutOf("c", { said: "foreign words" })
      const even = sampleOf(third, { inputIds: [1001, 1002], actionMask: [1, 1], credit: 3 })
      write(folder, "r/rollouts.jsonl", [one, foreign, third].map(Rollouts.line).join(""))
      write(folder, "r/samples.jsonl", [sample, other, even].map(Samples.line).join(""))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/r?episode=rollouts-1`)
        await shows("a")
        assert.deepStrictEqual(
          await page.evaluate("[...document.querySelectorAll('.said .token')].map((one) => [one.textContent, one.className])"), // prettier-ignore
          [["good ", "token up1"], ["bad", "token down4"]], // prettier-ignore
        )
        assert.include(String(await page.evaluate("getComputedStyle(document.querySelector('.said .down4')).textDecoration")), "dashed") // prettier-ignore
        await page.press("J")
        await shows("b")
        assert.include(await text(".said"), "unknown tokens2 tokens, by their numbers")
        await page.evaluate("document.querySelector('.said details').open = true")
        await page.until("document.querySelector('.said .none').textContent === '1001 '")
        await page.until("document.querySelector('.said .down4')?.textContent === '1002 '")
        await page.press("J")
        await shows("c")
        assert.strictEqual(await text(".said .up4"), "foreign words")
      })
    }))

  it("are text, whatever they say", () =>
    withFolder(async (folder) => {
      const evil = (place: string) =>
        `<img src=x onerror="window.stolen='${place}'"><script>window.stolen='${place}'</script></div>`
      const call = {
        messages: [{ role: "user" as const, content: evil("prompt") }, { role: "tool" as const, toolCallId: "x", toolName: evil("tool name"), content: evil("tool") }], // prettier-ignore
        completion: {
          ...callStep("x", 0).call.completion,
          content: evil("said"),
          model: evil("model"),
          toolCalls: [{ id: "x", name: evil("name"), arguments: evil("arguments") }],
        },
        toolResults: [{ toolCallId: "x", toolName: evil("name"), content: evil("result"), isError: true }],
        parsed: { _tag: "Failed", feedback: evil("refused"), reward: -0.1 },
      }
      const id = `${evil("id")}'"\\]`
      const plain = rolloutOf(id, {
        steps: [
          callStep(id, 0, { call }),
          envStep(id, 1, {
            step: {
              observation: evil("observation"),
              action: evil("action"),
              nextObservation: evil("next"),
              feedback: {
                score: 1,
                target: evil("target"),
                message: evil("message"),
                extra: { [evil("key")]: evil("extra") },
              },
              info: { [evil("info key")]: evil("info"), __proto__: null },
            },
          }),
        ],
      })
      const meta = { ...plain.meta, envId: evil("env"), envType: evil("type"), agent: evil("agent"), model: evil("model"), player: evil("player"), tags: { [evil("tag")]: evil("tag") } } // prettier-ignore
      const child = rolloutOf(`${id}/sub/0`, { parent: id })
      write(folder, "r/rollouts.jsonl", [{ ...plain, meta }, { ...child, meta: { ...child.meta, tags: { delegate: evil("child") } } }].map(Rollouts.line).join("")) // prettier-ignore
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/r?episode=rollouts-1&text=${encodeURIComponent("<IMG")}`)
        await shows(id)
        await page.evaluate("for (const one of document.querySelectorAll('.transcript details')) one.open = true")
        await page.until("document.querySelectorAll('.prompt .message').length >= 2")
        const seen = String(await page.evaluate(`document.querySelector('.talk').textContent`))
        for (const place of [
          "prompt",
          "tool name",
          "tool",
          "said",
          "name",
          "arguments",
          "result",
          "refused",
          "observation",
          "action",
          "next",
          "target",
          "message",
          "extra",
          "info",
          "env",
          "type",
          "agent",
          "player",
          "tag",
          "child",
          "id",
        ])
          // prettier-ignore
          assert.include(seen, `window.stolen='${place}'`, place)
        assert.strictEqual(await page.evaluate("document.querySelectorAll('main img, main script').length"), 0)
        assert.strictEqual(await page.evaluate("String(window.stolen)"), "undefined")
      })
    }))

  it("grow while a run goes on, and what is open stays open", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder)
      const path = join(folder, run, "rollouts/train/rollouts.jsonl")
      const lines = readFileSync(path, "utf8").split("\n")
      writeFileSync(path, `${lines.slice(0, 3).join("\n")}\n`)
      const scores = join(folder, run, "scores/train/scores.jsonl")
      const scored = readFileSync(scores, "utf8").split("\n")
      const upTo = (episode: number) => scored.findLastIndex((line) => line !== "" && JSON.parse(line).episode_index === episode) + 1 // prettier-ignore
      writeFileSync(scores, `${scored.slice(0, upTo(3)).join("\n")}\n`)
      writeFileSync(join(folder, run, "return.json"), "")
      execFileSync("rm", [join(folder, run, "return.json")])
      await served(folder, async (url) => {
        await page.goto(url + addressOf(run, "?phase=train"))
        await count(".episodeList a", 3)
        await click(".episodeList a[data-key=train-2]")
        await shows("train-2")
        await page.evaluate("window.sameDocument = document.querySelector('.transcript details'); window.sameDocument.open = true") // prettier-ignore
        // One that has begun has a step, and no rollout yet.
        appendFileSync(scores, `${scored[upTo(3)]}\n`)
        await count(".episodeList a", 4)
        assert.include(await page.evaluate(`${rows}[3].textContent`), "1 step, goes on")
        appendFileSync(scores, `${scored.slice(upTo(3) + 1, upTo(4)).join("\n")}\n`)
        appendFileSync(path, `${lines[3]}\n`)
        await page.until(`${rows}[3].textContent.includes('2 steps, terminated')`)
        assert.isTrue(await page.evaluate("window.sameDocument.isConnected && window.sameDocument.open"))
      })
    }))

  it("of thousands of episodes come a page at a time, from either end, or from the middle", () =>
    withFolder(async (folder) => {
      const lines = Array.from({ length: 5000 }, (_, at) => Rollouts.line(rolloutOf(`e-${at + 1}`, { reward: at % 7 })))
      write(folder, "r/rollouts.jsonl", lines.join(""))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/r`)
        await count(".episodeList a", 100)
        assert.strictEqual(await text(".talk .count"), "5,000 episodes")
        await page.evaluate("document.querySelectorAll('.episodeNav .more')[1].click()")
        await count(".episodeList a", 200)
        await page.goto(`${url}#/run/r?episode=rollouts-4201`)
        await shows("e-4201")
        assert.include(await page.evaluate(`${titles}.at(0)`), "e-4201")
        await page.press("K")
        await shows("e-4200")
        await count(".episodeList a", 200)
        await set(".talk select", "newest")
        await page.until(`${titles}.at(0) === 'e-5000 env of e-5000'`)
        await set(".bound", "6")
        await page.until("document.querySelector('.talk .count').textContent === '714 of 5,000 episodes'")
      })
    }))

  it("are those that were asked for last, however long what was asked before takes", () =>
    withFolder(async (folder) => {
      const lines = Array.from({ length: 300 }, (_, at) => Rollouts.line(rolloutOf(`e-${at + 1}`)))
      write(folder, "r/rollouts.jsonl", lines.join(""))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/r`)
        await count(".episodeList a", 100)
        await page.evaluate(`(() => {
          const own = fetch
          window.held = []
          window.fetch = async (address) => {
            if (address.includes("text=")) await new Promise((go) => held.push(go))
            return own(address)
          }
          const [later, never] = [setTimeout, clearTimeout]
          window.timers = new Set()
          window.setTimeout = (act, wait) => {
            const timer = later(() => { act(); timers.delete(timer) }, wait)
            timers.add(timer)
            return timer
          }
          window.clearTimeout = (timer) => {
            timers.delete(timer)
            never(timer)
          }
        })()`)
        const release = "held.splice(0).forEach((go) => go())"
        await set(".find", "e-30")
        await page.until("held.length === 1")
        await set(".find", "")
        await page.until("!location.hash.includes('text=')")
        // The page no longer waits for another letter.
        await page.until("timers.size === 0")
        await page.evaluate(release)
        await page.until("document.querySelector('.talk .count').textContent === '300 episodes'")
        await count(".episodeList a", 100)

        await set(".find", "e-30")
        await page.until("held.length === 1")
        await page.evaluate("document.querySelectorAll('.episodeNav .more')[1].click()")
        await page.evaluate(release)
        await page.until(
          "document.querySelector('.talk .count').textContent === '2 of 300 episodes' || held.length > 0",
        )
        await page.evaluate(release)
        await page.until("document.querySelector('.talk .count').textContent === '2 of 300 episodes'")
        assert.deepStrictEqual(await page.evaluate(titles), ["e-30 env of e-30", "e-300 env of e-300"])
      })
    }))

  it("fold long texts, and who unfolds one by the keyboard is at that text", () =>
    withFolder(async (folder) => {
      const long = "word ".repeat(1000)
      write(folder, "r/rollouts.jsonl", Rollouts.line(rolloutOf("a", { said: `${long}end` })))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/r?episode=rollouts-1`)
        await shows("a")
        assert.strictEqual(await text(".said .fold"), "Show all 5,003 letters")
        await page.evaluate("document.querySelector('.said .fold').focus()")
        await page.press("Enter", "\r")
        await page.until("document.querySelector('.said .fold') === null")
        assert.isTrue(await page.evaluate("document.activeElement.matches('.said .words')"))
        assert.isTrue(await page.evaluate("document.activeElement.textContent.endsWith('word end')"))
      })
    }))

  it("fit on a phone", () =>
    withFolder(async (folder) => {
      const long = "x".repeat(500)
      const wide = rolloutOf("a", { steps: [callStep("a", 0, { said: long }), envStep("a", 1, { step: { observation: long, action: long } })] }) // prettier-ignore
      write(folder, "r/rollouts.jsonl", [wide, rolloutOf(`a/sub/${long}`, { parent: "a" })].map(Rollouts.line).join(""))
      await served(folder, async (url) => {
        await page.look(360, 740)
        await page.goto(`${url}#/run/r?episode=rollouts-1`)
        await shows("a")
        assert.strictEqual(await page.evaluate("document.documentElement.scrollWidth"), 360)
        await page.look(1280, 900)
      })
    }))
})
