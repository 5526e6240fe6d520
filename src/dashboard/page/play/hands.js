/** Reads how a person pushes: by the arrow keys while an element has the focus, or by a slider. */
import { el } from "../parts/dom.js"

const arrows = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" }

/** The time in milliseconds in which a held key reaches its full push. */
const ramp = 300

/** Listens to an element. `pressed` is called at each press of an arrow key; keys count while `isOn()` is true. */
export const makeHands = (element, isOn, pressed) => {
  const held = { left: false, right: false, up: false, down: false }
  let since = 0
  const slider = el("input", { type: "range", min: "-1", max: "1", step: "0.01", value: "0", "aria-label": "Push" })
  const letGo = () => {
    for (const key of Object.keys(held)) held[key] = false
  }
  element.addEventListener("keydown", (event) => {
    const key = arrows[event.key]
    if (key === undefined || !isOn() || event.target === slider || event.target instanceof HTMLSelectElement) return
    event.preventDefault()
    if (event.repeat) return
    held[key] = true
    since = performance.now()
    pressed()
  })
  element.addEventListener("keyup", (event) => {
    const key = arrows[event.key]
    if (key !== undefined) held[key] = false
  })
  element.addEventListener("focusout", letGo)
  return {
    held,
    slider,
    /** Returns the push to the right, from −1 to 1: by the keys, which push harder the longer they are held. */
    push: () => {
      const direction = Number(held.right) - Number(held.left)
      if (direction === 0) return Number(slider.value)
      return direction * Math.min(1, 0.3 + (performance.now() - since) / ramp)
    },
  }
}
