/** Makes the page "Play", which trains in a web worker of this browser, and shows how the policy learns. */
import { makeChart } from "../parts/chart.js"
import { el, factList, onceAFrame, seriesColor } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makePicture } from "./picture.js"
import { makeSaves } from "./saves.js"
import { makeSettings } from "./settings.js"
import { startTrainer } from "./trainer.js"

/** Makes the page, and starts the worker that trains. */
export const makePlayPage = () => {
  const page = makePage()
  const drawSoon = () => page.draw()
  return {
    element: page.element,
    update: () => {
      page.trainer.send("List")
      drawSoon()
    },
    restore: () => {},
    draw: drawSoon,
    changed: () => {},
    close: () => {
      page.trainer.close()
      page.picture.close()
    },
  }
}

/** Makes the state of the page: its elements, the worker, and the training. All functions below work on this state. */
const makePage = () => {
  const page = {
    settings: makeSettings(),
    chart: makeChart("Mean return of the last 100 episodes"),
    facts: el("div"),
    status: el("p.line.quiet", { role: "status" }, "Nothing is training."),
    problem: el("p.problem", { role: "alert" }),
    bar: el("progress", { max: "1", value: "0", "aria-label": "Steps done" }),
    train: el("button.button", { onclick: () => start(page, null) }, "Train"),
    goOn: el("button.button", { onclick: () => start(page, page.training.directory) }, "Continue"),
    stop: el("button.button", { onclick: () => page.trainer.send("Stop") }, "Stop"),
    picture: makePicture(() => page.trainer.send("Watch")),
    saves: makeSaves(
      (directory) => page.trainer.send("Load", { directory }),
      (directory) => page.trainer.send("Remove", { directory }),
    ),
    /** The training that is shown: its folder, its progress and its curve. */
    training: noTraining(),
    trainer: startTrainer(
      (answer) => {
        answers[answer._tag](page, answer)
        page.draw()
      },
      (message) => fail(page, message),
    ),
    /** Draws the training in the next frame. */
    draw: onceAFrame(() => draw(page)),
    element: undefined,
  }
  page.element = elementOf(page)
  return page
}

const noTraining = () => ({ state: "none", directory: undefined, step: 0, totalSteps: 0, x: [], y: [] })

const elementOf = ({ settings, train, goOn, stop, status, problem, bar, facts, picture, chart, saves }) => {
  const controls = el("div.controls", train, goOn, stop)
  return el(
    "article.play",
    el("h1", "Play"),
    el("p.quiet", "Train a policy in this browser, and watch it learn. Nothing is sent anywhere."),
    el(
      "div.halves",
      el("section.card", el("h2", "Settings"), settings.element, controls, status, problem, bar, facts),
      el("div", picture.element, chart.element),
    ),
    saves.element,
  )
}

const draw = ({ element, training, train, goOn, stop, bar, facts, chart }) => {
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
}

/** Starts a training, or resumes the one in a folder. */
const start = (page, resume) => {
  page.problem.textContent = ""
  const first = { x: [], y: [], step: 0, meanReturn: undefined, directory: undefined }
  if (resume === null) page.training = { ...page.training, ...first }
  page.training.state = page.element.dataset.state = "training"
  page.training.digest = undefined
  page.trainer.send("Train", { config: page.settings.config(), resume })
  page.draw()
}

const fail = (page, message) => {
  page.training = { ...page.training, state: "failed" }
  page.problem.textContent = message
  page.status.textContent = ""
  page.draw()
}

const texts = { finished: "The training is finished.", stopped: "The training is stopped and saved.", failed: "" }

/** The functions that update the page for each answer of the worker, by the answer's tag. */
const answers = {
  Started: (page, { directory, step, totalSteps, env }) => {
    page.training = { ...page.training, state: "training", directory, step, totalSteps, digest: undefined }
    page.status.textContent = `Training on ${env}.`
    page.picture.begin()
  },
  Progress: ({ training }, { step, meanReturn, stepsPerSecond }) => {
    Object.assign(training, { step, meanReturn, stepsPerSecond })
    if (meanReturn === null) return
    training.x.push(step)
    training.y.push(meanReturn)
  },
  Episode: ({ picture }, answer) => void picture.take(answer),
  Ended: (page, { reason, message, directory, digest }) => {
    page.training = { ...page.training, state: reason, directory: directory ?? page.training.directory, digest }
    page.status.textContent = texts[reason]
    page.problem.textContent = message ?? ""
    page.trainer.send("List")
  },
  Listed: ({ saves, training }, { directories }) => {
    saves.show(directories)
    if (!directories.includes(training.directory)) training.directory = undefined
  },
  Loaded: (page, { saved: { directory, config } }) => {
    page.settings.write(config)
    page.training = { ...noTraining(), state: "loaded", directory }
    page.status.textContent = "Loaded. “Continue” trains on, to as many steps as the config says."
    page.problem.textContent = ""
  },
  Refused: ({ problem }, { message }) => (problem.textContent = message),
}
