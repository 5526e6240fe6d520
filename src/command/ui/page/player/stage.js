/**
 * Renders single steps of an episode with the env's own code, in a sandboxed frame. If there is no such code, it writes
 * numbers.
 *
 * The code is not trusted. The frame has an origin of its own, and a policy without a network; `frame.js` removes WebRTC from
 * it, and all elements that could add a link, a frame or a script. Some risks remain: the code may compute without end, which
 * costs a processor (and, in a browser that gives the frame no process of its own, stops the tab); it may request files of
 * the page's own server as modules, which it cannot read; it may draw what it likes; and if it takes its frame to another
 * address, that is refused and ends the frame, but the browser has looked up the name by then and may have connected, without
 * sending anything. A browser without trusted types relies on `frame.js` alone.
 */
import { el } from "../parts/dom.js"
import { number } from "../parts/format.js"

/**
 * The number of messages that a frame may send without being asked. After that it is removed, because handling more messages
 * would block the tab.
 */
const spare = 100

/** The number of characters after which a message of a frame is cut. */
const mostText = 300

/** @typedef {{ parameters: object, state: unknown, action: unknown, index: string, episode: number }} Shown */

/** Makes an empty stage. `failed` is called with a message if the env's code fails. */
export const makeStage = (failed) => {
  const stage = {
    element: el("div.stage"),
    failed,
    /** @type {(message: Shown) => void} */
    show: () => {},
    stop: () => {},
  }
  return {
    element: stage.element,
    /**
     * Prepares the stage for the env with this code; undefined if the env has none. Steps may be shown only after this has
     * ended.
     */
    start: async (code) => {
      stage.stop()
      stage.stop = () => {}
      if (code === undefined) numbers(stage)
      else await framed(stage, code).catch(() => numbers(stage))
    },
    show: (message) => stage.show(message),
    close: () => stage.stop(),
  }
}

/** Sets `show` to a function that writes a step's state and action as numbers. */
const numbers = (stage) => {
  const text = el("pre.numbers")
  stage.element.replaceChildren(text)
  stage.show = ({ state, action }) => {
    const list = (values) =>
      Array.isArray(values) ? values.map((value) => number(value)).join("  ") : JSON.stringify(values)
    text.textContent = `state   ${list(state)}\naction  ${list(action)}`
  }
}

/**
 * Sets `show` to a function that renders a step with the env's code in a frame. The frame receives one step at a time, always
 * the newest.
 */
const framed = (stage, code) => {
  const { promise, resolve, reject } = Promise.withResolvers()
  const frame = el("iframe", {
    sandbox: "allow-scripts",
    src: "player/frame.html",
    title: "The episode, drawn by the run's own code",
  })
  let allowed = spare
  /** @type {Shown | undefined} */
  let newest
  /** The step that the frame is drawing, and the step that it will draw next. */
  let drawing
  let waiting
  const post = (message) => {
    allowed++
    frame.contentWindow?.postMessage(message, "*")
  }
  /** Sends the newest step, once the frame has drawn the step before. */
  const next = () => {
    drawing = waiting
    waiting = undefined
    if (drawing !== undefined) post({ type: "show", ...drawing })
  }
  const fail = (problem) => {
    const message = `ui.esm.js: ${problem}`
    stage.failed(message)
    reject(new Error(message))
  }
  /** Removes a frame that does something which drawing doesn't need, and writes the step as numbers instead. */
  const end = (problem) => {
    stage.stop()
    fail(problem)
    numbers(stage)
    if (newest !== undefined) stage.show(newest)
  }
  const onMessage = (event) => {
    if (event.source !== frame.contentWindow) return
    // The count is checked before `data` is read, because the browser decodes a message when it is first read.
    if (allowed-- <= 0) return end(`it was stopped, because it sent more than ${spare} messages that nobody asked for`)
    const { type, message } = Object(event.data)
    if (type === "ready") resolve(undefined)
    else if (type === "failed") {
      fail(typeof message === "string" ? message.slice(0, mostText).replaceAll(/\s+/g, " ") : "it failed")
      next()
    } else if (type === "drawn" && drawing !== undefined) {
      frame.dataset.drawn = drawing.index
      next()
    }
  }
  let loads = 0
  frame.addEventListener("load", () => {
    if (++loads === 1) post({ type: "start", code })
    else end("it was stopped, because it opened another page in its frame")
  })
  addEventListener("message", onMessage)
  stage.stop = () => {
    removeEventListener("message", onMessage)
    frame.remove()
  }
  stage.element.replaceChildren(frame)
  stage.show = (message) => {
    newest = waiting = message
    if (drawing === undefined) next()
  }
  return promise
}
