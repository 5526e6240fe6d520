/** Makes the page "Play", which trains in a web worker of this browser, and shows how the policy learns. */
import { makeChart } from "../parts/chart.js"
import { el, factList, onceAFrame, seriesColor } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makePicture } from "./picture.js"
import { makeSaves } from "./saves.js"
import { makeSettings } from "./settings.js"
import { startTrainer } from "./trainer.js"

export const makePlayPage = () => {
  const settings = makeSettings()
  const chart = makeChart("Mean return of the last 100 episodes")
  const facts = el("div")
  const status = el("p.line.quiet", { role: "status" }, "Nothing is training.")
  const problem = el("p.problem", { role: "alert" })
  const bar = el("progress", { max: "1", value: "0", "aria-label": "Steps done" })
  const train = el("button.button", { onclick: () => start(null) }, "Train")
  const goOn = el("button.button", { onclick: () => start(training.directory) }, "Continue")
  const stop = el("button.button", { onclick: () => trainer.send("Stop") }, "Stop")
  const picture = makePicture(() => trainer.send("Watch"))
  const saves = makeSaves(
    (directory) => trainer.send("Load", { directory }),
    (directory) => trainer.send("Remove", { directory }),
  )
  /** The training that is shown: its folder, its progress and its curve. */
  let training = { state: "none", directory: undefined, step: 0, totalSteps: 0, x: [], y: [] }

  const draw = onceAFrame(() => {
    const { state, directory, step, totalSteps, meanReturn, stepsPerSecond, digest, x, y } = training
    element.dataset.state = state
    train.disabled = state === "training"
    goOn.disabled = state === "training" || directory === undefined
    stop.disabled = state !== "training"
    bar.max = totalSteps || 1
    bar.value = step
    facts.replaceChildren(
      factList([
        ["steps", `${number(step)} of ${number(totalSteps)}`],
        ["mean return", number(meanReturn)],
        ["speed", stepsPerSecond === null || stepsPerSecond === undefined ? "–" : `${number(Math.round(stepsPerSecond))} steps/s`], // prettier-ignore
        ["digest", digest],
      ]),
    )
    const line = { label: "mean return", color: seriesColor(0), x, y }
    chart.show({ series: x.length === 0 ? [] : [line], xName: "steps", logX: false, logY: false, nothing: "no episode has ended yet" }) // prettier-ignore
  })

  const texts = { finished: "The training is finished.", stopped: "The training is stopped and saved.", failed: "" }

  const answers = {
    Started: ({ directory, step, totalSteps, env }) => {
      training = { ...training, state: "training", directory, step, totalSteps, digest: undefined }
      status.textContent = `Training on ${env}.`
      picture.begin()
    },
    Progress: ({ step, meanReturn, stepsPerSecond }) => {
      Object.assign(training, { step, meanReturn, stepsPerSecond })
      if (meanReturn === null) return
      training.x.push(step)
      training.y.push(meanReturn)
    },
    Episode: (answer) => void picture.take(answer),
    Ended: ({ reason, message, directory, digest }) => {
      training = { ...training, state: reason, directory: directory ?? training.directory, digest }
      status.textContent = texts[reason]
      problem.textContent = message ?? ""
      trainer.send("List")
    },
    Listed: ({ directories }) => {
      saves.show(directories)
      if (!directories.includes(training.directory)) training.directory = undefined
    },
    Loaded: ({ saved: { directory, config } }) => {
      settings.write(config)
      training = { state: "loaded", directory, step: 0, totalSteps: 0, x: [], y: [] }
      status.textContent = "Loaded. “Continue” trains on, to as many steps as the config says."
      problem.textContent = ""
    },
    Refused: ({ message }) => (problem.textContent = message),
  }

  const trainer = startTrainer(
    (answer) => {
      answers[answer._tag](answer)
      draw()
    },
    (message) => {
      training = { ...training, state: "failed" }
      problem.textContent = message
      status.textContent = ""
      draw()
    },
  )

  const start = (resume) => {
    problem.textContent = ""
    if (resume === null) training = { ...training, x: [], y: [], step: 0, meanReturn: undefined, directory: undefined }
    training.state = element.dataset.state = "training"
    training.digest = undefined
    trainer.send("Train", { config: settings.config(), resume })
    draw()
  }

  const element = el(
    "article.play",
    el("h1", "Play"),
    el("p.quiet", "Train a policy in this browser, and watch it learn. Nothing is sent anywhere."),
    el(
      "div.halves",
      el(
        "section.card",
        el("h2", "Settings"),
        settings.element,
        el("div.controls", train, goOn, stop),
        status,
        problem,
        bar,
        facts,
      ),
      el("div", picture.element, chart.element),
    ),
    saves.element,
  )

  return {
    element,
    update: () => {
      trainer.send("List")
      draw()
    },
    restore: () => {},
    draw,
    changed: () => {},
    close: () => {
      trainer.close()
      picture.close()
    },
  }
}
