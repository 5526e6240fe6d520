/**
 * Runs work that nobody waits for when the page is idle. Before a page is printed, it draws all charts so that they fit on
 * paper.
 */

const waiting = new Set()
let isAsked = false

/** Runs an action when the page is idle. An action that is already waiting is not added a second time. */
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
  // Run one action at a time, because drawing a chart takes several milliseconds.
  for (const action of waiting) {
    waiting.delete(action)
    action()
    break
  }
  ask()
}

/** The width of a chart in pixels that fits on paper of the sizes A4 and Letter. */
const printed = 660
let isPrinting = false

/** Returns the largest width of a chart: infinite, except while the page is being printed. */
export const mostPrinted = () => (isPrinting ? printed : Infinity)

/**
 * Sends the event `paint` to all charts, because some have not been drawn yet (they were not visible) and others may be too
 * wide.
 */
const paintAll = (next) => () => {
  isPrinting = next
  for (const plot of document.querySelectorAll(".plot")) plot.dispatchEvent(new Event("paint"))
}
addEventListener("beforeprint", paintAll(true))
addEventListener("afterprint", paintAll(false))
