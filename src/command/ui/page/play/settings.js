/** Makes the settings of the page "Play": the choice of an env, sliders, and the whole config as text. */
import { choice, el } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { settingIn, withSetting } from "./configText.js"
import { presets, sliders } from "./presets.js"

/** Returns the index of the value nearest to a number. */
const nearest = (values, wanted) =>
  values.reduce((best, value, index) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? index : best), 0)

/** Makes a slider for one setting of the config. `read` returns its value, and `write` replaces it. */
const makeSlider = ({ path, label, values }, read, write) => {
  const shown = el("output.quiet")
  const input = el("input", {
    type: "range",
    min: "0",
    max: String(values.length - 1),
    step: "1",
    "data-setting": path,
    oninput: () => {
      write(withSetting(read(), path, String(values[Number(input.value)])))
    },
  })
  return {
    element: el("label.field.slider", el("span.both", el("span", label), shown), input),
    update: () => {
      const value = settingIn(read(), path)
      input.disabled = value === undefined
      if (value !== undefined) input.value = String(nearest(values, Number(value)))
      const text =
        value === undefined ? "not in the config" : Number.isNaN(Number(value)) ? value : number(Number(value))
      shown.textContent = text
      input.setAttribute("aria-valuetext", text)
    },
  }
}

/** Makes the settings. They are stored only in the text of the config; a slider changes a single line of it. */
export const makeSettings = () => {
  const text = el("textarea.configText", {
    rows: "16",
    spellcheck: "false",
    "aria-label": "The config, as effect run takes it",
    oninput: () => update(),
  })
  const write = (config) => {
    text.value = config
    update()
  }
  const all = sliders.map((slider) => makeSlider(slider, () => text.value, write))
  const update = () => all.forEach((slider) => slider.update())
  const options = [...presets].map(([name, preset]) => [name, preset.text])
  const env = choice("environment", options, "CartPole", (name) => write(presets.get(name).config))
  write(presets.get("CartPole").config)
  return {
    element: el(
      "div",
      env,
      el("div.sliders", all.map((slider) => slider.element)), // prettier-ignore
      el(
        "details",
        el("summary", "The config as a text"),
        el("p.hint.quiet", "Saved as play.yaml, “effect run play.yaml --backend wasm” gives the same digest."),
        text,
      ),
    ),
    config: () => text.value,
    write,
  }
}
