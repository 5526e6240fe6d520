/** Reads where a pointer, which may be a finger, holds the picture of a body. Keys for the same are in `hands.js`. */
import { el } from "../parts/dom.js"

/** Makes a cover for a stage. It is hidden until `open` says how large the picture is, in the unit of its drawing. */
export const makeReach = (stage) => {
  const cover = el("div.reach", { hidden: true, "aria-hidden": "true" })
  let size
  let pointer
  let at
  const placeOf = ({ clientX, clientY }) => {
    const { left, top, width, height } = (stage.querySelector("iframe") ?? stage).getBoundingClientRect()
    // The picture is as large as fits into the frame, in its middle.
    const scale = Math.min(width / size.width, height / size.height)
    return [
      size.width / 2 + (clientX - left - width / 2) / scale,
      size.height / 2 + (clientY - top - height / 2) / scale,
    ]
  }
  const release = () => {
    pointer = at = undefined
    for (const [name, listener] of Object.entries(listeners)) removeEventListener(name, listener)
  }
  const ofPointer = (listener) => (event) => {
    if (event.pointerId === pointer) listener(event)
  }
  // The window has them, because the browser may take the capture of a pointer away from an element over a frame.
  const listeners = {
    // Without a button, the release happened outside of the window.
    pointermove: ofPointer((event) => (event.buttons === 0 ? release() : (at = placeOf(event)))),
    pointerup: ofPointer(release),
    pointercancel: ofPointer(release),
  }
  cover.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pointer !== undefined) return
    pointer = event.pointerId
    cover.setPointerCapture(pointer)
    at = placeOf(event)
    for (const [name, listener] of Object.entries(listeners)) addEventListener(name, listener)
  })
  return {
    element: cover,
    open: (picture) => {
      size = picture
      cover.hidden = picture === undefined
      release()
    },
    /** Returns the point of the picture that is held; undefined if none is. */
    at: () => at,
  }
}
