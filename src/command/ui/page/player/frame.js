// Renders steps of an episode in the player's sandboxed frame, by the run's own `ui.esm.js`. `stage.js` sends the code and
// the steps as messages. The frame has an origin of its own, so the run's code reaches only a canvas. This is a classic
// script: the browser would refuse to load a module for such a frame.
{
  /**
   * Takes from this document what its Content-Security-Policy doesn't govern, before any code of the run: connections by
   * WebRTC, and link hints, by which a name server hears from the browser. A frame that the run's code adds would have
   * both again, so no element can be made but those that a picture needs, and no HTML can be parsed. Code of the run may
   * replace any function later, so the functions below call none that it can reach.
   */
  const close = () => {
    for (const name of Object.getOwnPropertyNames(self)) if (name.includes("RTC")) delete self[name]
    const parsers = /HTML|^(?:write|writeln|open|createContextualFragment|execCommand|createDocument)$/
    for (const type of [Document, Element, ShadowRoot, Range, DOMImplementation]) {
      for (const owner of [type, type.prototype]) {
        for (const name of Object.getOwnPropertyNames(owner)) if (parsers.test(name)) delete owner[name]
      }
    }
    for (const name of ["DOMParser", "XSLTProcessor"]) delete self[name]
    delete CustomElementRegistry.prototype.define
    const isAllowed = Object.create(null)
    for (const name of drawn.split(" ")) isAllowed[name] = isAllowed[name.toUpperCase()] = true
    const { apply } = Reflect
    for (const [name, place] of [
      ["createElement", 0],
      ["createElementNS", 1],
    ]) {
      const make = Document.prototype[name]
      Document.prototype[name] = function (first, second) {
        // A template turns an object into a text only once, so that the text that is checked is the one that is used.
        const tag = `${place === 0 ? first : second}`
        if (isAllowed[tag] !== true) throw new Error(`the frame of an episode has no element <${tag}>`)
        return apply(make, this, place === 0 ? [tag] : [first, tag])
      }
    }
    // The element of the policy can go, the policy stays.
    for (const element of document.querySelectorAll("head > *, script")) element.remove()
  }

  /** The elements that the run's code may make: HTML without links, frames and scripts, and the shapes of SVG. */
  const drawn =
    "canvas img div span p pre code b i em strong small sub sup br hr h1 h2 h3 ul ol li dl dt dd table thead tbody tr th td " +
    "svg g defs symbol use path rect circle ellipse line polyline polygon text tspan image marker mask pattern title desc " +
    "clipPath linearGradient radialGradient stop filter"

  close()

  let ui
  let uiState
  let queue = Promise.resolve()
  let last
  let shownEpisode

  const send = (message) => parent.postMessage(message, "*")

  /** Writes an error, which may be any value, on one line. */
  const textOf = (error) => {
    try {
      return String(error)
    } catch {
      return "it failed"
    }
  }

  const fill = (...elements) => {
    for (const { style } of elements) {
      Object.assign(style, { display: "block", width: "100%", height: "100%", margin: "0", background: "#fff" })
    }
  }

  const fit = (canvas) => {
    const ratio = devicePixelRatio || 1
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio))
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio))
    return ratio
  }

  const start = async (code) => {
    const canvas = document.querySelector("canvas")
    fill(document.documentElement, document.body, canvas)
    const ratio = fit(canvas)
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }))
    ui = await import(address)
    uiState = await ui.init(canvas, { devicePixelRatio: ratio })
    send({ type: "ready" })
    new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1
      if (canvas.width === Math.round(canvas.clientWidth * ratio)) return
      // A change of its size clears the canvas, so render the last step again.
      fit(canvas)
      if (last !== undefined) inTurn(() => show(last))
    }).observe(canvas)
  }

  const show = async (message) => {
    // Skip this step if a newer one has arrived.
    if (last !== message) return
    const { parameters, state, action, episode } = message
    if (shownEpisode !== episode && ui.episode_init !== undefined) await ui.episode_init(uiState, parameters)
    shownEpisode = episode
    await ui.render(uiState, parameters, state, action)
  }

  /** Runs an action after those before it. It reports that the action has failed, or else it sends `done`, if given. */
  const inTurn = (action, done) => {
    queue = queue.then(action).then(
      () => done && send(done),
      (error) => send({ type: "failed", message: textOf(error) }),
    )
  }

  addEventListener("message", ({ data, source }) => {
    // Outside of a sandbox, this code would run with the rights of the page's origin, and any page could frame it.
    if (source !== parent || self.origin !== "null") return
    if (data.type === "show") {
      last = data
      inTurn(() => show(data), { type: "drawn" })
    } else if (data.type === "start") inTurn(() => start(data.code))
  })
}
