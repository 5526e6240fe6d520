/** Starts the web worker that trains, and exchanges messages with it; `messages.ts` defines them. */

/** Starts the worker. `receive` is called with its answers, and `failed` with a message if the worker itself fails. */
export const startTrainer = (receive, failed) => {
  const worker = new Worker(new URL("./worker.js", import.meta.url))
  let isTraining = false
  let isClosed = false
  /** The reason why the worker failed, after which it sends no answers; undefined if it did not fail. */
  let problem
  worker.addEventListener("message", ({ data }) => {
    if (data._tag === "Started") isTraining = true
    if (data._tag === "Ended") isTraining = false
    if (isClosed && !isTraining) return worker.terminate()
    if (!isClosed) receive(data)
  })
  worker.addEventListener("error", (event) => {
    event.preventDefault()
    problem = `the worker that trains has failed: ${event.message ?? "its script play/worker.js could not be loaded"}; load this page again`
    isTraining = false
    failed(problem)
  })
  return {
    send: (tag, more = {}) => (problem === undefined ? worker.postMessage({ _tag: tag, ...more }) : failed(problem)),
    /** Stops the training, which the worker saves, and then ends the worker. */
    close: () => {
      isClosed = true
      if (isTraining) worker.postMessage({ _tag: "Stop" })
      else worker.terminate()
    },
  }
}
