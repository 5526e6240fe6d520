/**
 * Renders single steps of an episode by the env's own code, in a sandboxed frame. Without such code, it writes numbers.
 */
import { el } from "../parts/dom.js"
import { number } from "../parts/format.js"

/** Makes an empty stage. `failed` is called with a message if the env's code fails. */
export const makeStage = (failed) => {
  const element = el("div.stage")
  /** @type {(message: { parameters: object, state: unknown, action: unknown, index: string, episode: number }) => void} */
  let show = () => {}
  let stop = () => {}

  /** Makes `show` write a step's state and action as numbers. */
  const numbers = () => {
    const text = el("pre.numbers")
    element.replaceChildren(text)
    show = ({ state, action }) => {
      const list = (values) =>
        Array.isArray(values) ? values.map((value) => number(value)).join("  ") : JSON.stringify(values)
      text.textContent = `state   ${list(state)}\naction  ${list(action)}`
    }
  }

  /** Makes `show` render a step by the env's code, in a frame that can access neither this page nor the network. */
  const framed = (code) => {
    const { promise, resolve, reject } = Promise.withResolvers()
    const frame = el("iframe", {
      sandbox: "allow-scripts",
      src: "player/frame.html",
      title: "The episode, drawn by the run's own code",
    })
    const onMessage = ({ source, data }) => {
      if (source !== frame.contentWindow) return
      if (data.type === "loaded") frame.contentWindow.postMessage({ type: "start", code }, "*")
      else if (data.type === "ready") resolve(undefined)
      else if (data.type === "failed") {
        const message = `ui.esm.js: ${data.message}`
        failed(message)
        reject(new Error(message))
      } else if (data.type === "drawn") frame.dataset.drawn = data.index
    }
    addEventListener("message", onMessage)
    stop = () => removeEventListener("message", onMessage)
    element.replaceChildren(frame)
    show = (message) => frame.contentWindow?.postMessage({ type: "show", ...message }, "*")
    return promise
  }

  return {
    element,
    /** Prepares the stage for the env with this code; undefined if the env has none. */
    start: async (code) => {
      stop()
      if (code === undefined) numbers()
      else await framed(code).catch(numbers)
    },
    show: (message) => show(message),
    close: () => stop(),
  }
}
