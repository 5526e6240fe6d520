/** Reads the input of a person: keys while an element has the focus, buttons on a touch screen, or a slider. */
import { el } from "../parts/dom.js"

const keysOfHands = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", f: "fire", F: "fire" }
const signs = { up: "↑", left: "←", down: "↓", right: "→", fire: "✦" }

/** The time in milliseconds after which a held key has its full push. */
const ramp = 300

/** Listens to an element. `pressed` is called at each press of one of the keys; they count only while `isOn()` is true. */
export const makeHands = (element, isOn, pressed) => {
  const held = { left: false, right: false, up: false, down: false, fire: false }
  let since = 0
  const slider = el("input", { type: "range", min: "-1", max: "1", step: "0.01", value: "0", "aria-label": "Push" })
  const letGo = () => {
    for (const key of Object.keys(held)) held[key] = false
  }
  const press = (key) => {
    if (!isOn()) return
    held[key] = true
    since = performance.now()
    pressed()
  }
  element.addEventListener("keydown", (event) => {
    const key = keysOfHands[event.key]
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (key === undefined || !isOn() || event.target === slider || event.target instanceof HTMLSelectElement) return
    event.preventDefault()
    if (!event.repeat) press(key)
  })
  element.addEventListener("keyup", (event) => {
    const key = keysOfHands[event.key]
    if (key !== undefined) held[key] = false
  })
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (!element.contains(relatedTarget)) letGo()
  })

  /**
   * Makes the button of an arrow, or of the key to fire. Each finger holds the button where it first touched, so two
   * buttons can be held at once.
   */
  const arrowButton = ([key, sign]) => {
    const button = el(`button.arrow.${key}`, { type: "button", "aria-label": key }, sign)
    const release = () => (held[key] = false)
    button.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return
      button.setPointerCapture(event.pointerId)
      press(key)
    })
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, release)
    // A press must not move the focus, and a long press must not open a menu.
    for (const name of ["mousedown", "contextmenu"]) button.addEventListener(name, (event) => event.preventDefault())
    // A screen reader or a key clicks without a pointer, which counts as a short press.
    button.addEventListener("click", ({ detail }) => {
      if (detail !== 0) return
      press(key)
      setTimeout(release, ramp)
    })
    return button
  }
  const pad = el("div.pad", { hidden: true, role: "group", "aria-label": "Arrows" })

  return {
    held,
    slider,
    /** The buttons for a touch screen; the style sheet hides them on other screens. */
    pad,
    /** Shows the buttons of these keys; hides all if there are none. */
    showPad: (keys) => {
      pad.hidden = keys.length === 0
      pad.replaceChildren(...Object.entries(signs).filter(([key]) => keys.includes(key)).map(arrowButton)) // prettier-ignore
      letGo()
    },
    /** Returns the push to the right, from −1 to 1. The longer an arrow is held, the stronger is the push. */
    push: () => {
      const direction = Number(held.right) - Number(held.left)
      if (direction === 0) return Number(slider.value)
      return direction * Math.min(1, 0.3 + (performance.now() - since) / ramp)
    },
  }
}
