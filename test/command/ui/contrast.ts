/**
 * The contrast of every text on a page with what it stands on, by WCAG 2: an expression for the browser, whose value is a
 * line for each kind of text below 4.5 : 1 (3 : 1 where it is large), and how many texts there are.
 */
export const lowContrasts = `(() => {
  const canvas = document.createElement("canvas")
  canvas.width = canvas.height = 1
  const context = canvas.getContext("2d", { willReadFrequently: true })
  // Whatever notation a colour is computed in, the canvas knows it.
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1)
    context.fillStyle = color
    context.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], below) => [...[r, g, b].map((one, index) => one * a + below[index] * (1 - a)), 1]
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((one) => one / 255).map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ratio = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x)
    return (high + 0.05) / (low + 0.05)
  }
  const parents = (element) => element === null ? [] : [element, ...parents(element.parentElement)]
  const backOf = (element) => parents(element).toReversed()
    .map((one) => rgba(getComputedStyle(one).backgroundColor))
    .reduce((below, color) => over(color, below), [255, 255, 255, 1])
  const opacityOf = (element) => parents(element).reduce((product, one) => product * Number(getComputedStyle(one).opacity), 1)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const owners = new Set()
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.textContent.trim() !== "") owners.add(node.parentElement)
  }
  for (const field of document.querySelectorAll("input[placeholder], select, button")) owners.add(field)
  const low = new Set()
  let texts = 0
  for (const element of owners) {
    if (!element.checkVisibility({ opacityProperty: true }) || element.closest(".hidden, .skip, noscript, option")) continue
    texts++
    const back = backOf(element)
    const placeholder = element.matches("input[placeholder]") ? ["::placeholder"] : []
    for (const part of [undefined, ...placeholder]) {
      const style = getComputedStyle(element, part)
      const [r, g, b, a] = rgba(style.color)
      const found = ratio(over([r, g, b, a * opacityOf(element)], back), back)
      const size = parseFloat(style.fontSize)
      const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
      if (found < (isLarge ? 3 : 4.5)) {
        const name = element.tagName.toLowerCase() + [...element.classList].map((one) => "." + one).join("") + (part ?? "")
        low.add(name + " " + found.toFixed(2) + " “" + element.textContent.trim().slice(0, 20) + "”")
      }
    }
  }
  return { low: [...low], texts }
})()`
