/** Runs work that nobody waits for when the page is idle, and draws charts so that they fit on paper before a page is printed. */

const waiting = new Set()
let isAsked = false

/** Runs an action when the page is idle; an action that already waits is not run twice. */
export const whenIdle = (action) => {
  waiting.add(action)
  ask()
}

const ask = () => {
  if (isAsked || waiting.size === 0) return
  isAsked = true
  // Safari has no requestIdleCallback.
  if (typeof requestIdleCallback === "function") requestIdleCallback(work)
  else setTimeout(work, 100)
}

const work = () => {
  isAsked = false
  // One action at a time: drawing a chart takes several milliseconds.
  for (const action of waiting) {
    waiting.delete(action)
    action()
    break
  }
  ask()
}

/** The width of a chart that fits on paper of the sizes A4 and Letter, in pixels. */
const printed = 660
let isPrinting = false

/** Returns the largest width of a chart: infinite, unless the page is being printed. */
export const mostPrinted = () => (isPrinting ? printed : Infinity)

/** Sends the event `paint` to all charts: those that are not visible have not been drawn yet, and others can be too wide. */
const paintAll = (next) => () => {
  isPrinting = next
  for (const plot of document.querySelectorAll(".plot")) plot.dispatchEvent(new Event("paint"))
}
addEventListener("beforeprint", paintAll(true))
addEventListener("afterprint", paintAll(false))
