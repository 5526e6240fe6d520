// Renders steps of an episode in the player's sandboxed frame, with the run's own `ui.esm.js`. `stage.js` sends the code and
// the steps as messages. The frame has its own origin, so the run's code can change only a canvas. This is a classic script,
// because the browser would refuse to load a module in such a frame.
{
  /**
   * Removes from this document what its Content-Security-Policy doesn't control, before any code of the run executes: WebRTC
   * connections, and link hints, which make the browser send names to a name server. A frame that the run's code adds would
   * have both again, so the document can create only elements that a picture needs, and can parse no HTML. The run's code may
   * later replace any function, so the functions below call none that it can reach.
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
        // The template converts an object to text only once, so that the text that is checked is also the text that is used.
        const tag = `${place === 0 ? first : second}`
        if (isAllowed[tag] !== true) throw new Error(`the frame of an episode has no element <${tag}>`)
        return apply(make, this, place === 0 ? [tag] : [first, tag])
      }
    }
    // The element that contains the policy can be removed; the policy stays in force.
    for (const element of document.querySelectorAll("head > *, script")) element.remove()
  }

  /** The elements that the run's code may create: HTML without links, frames and scripts, and the shapes of SVG. */
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
      // A change of its size clears the canvas, so the last step is rendered again.
      fit(canvas)
      if (last !== undefined) inTurn(() => show(last))
    }).observe(canvas)
  }

  const show = async (message) => {
    // Skip this step if a newer one has already arrived.
    if (last !== message) return
    const { parameters, state, action, episode } = message
    if (shownEpisode !== episode && ui.episode_init !== undefined) await ui.episode_init(uiState, parameters)
    shownEpisode = episode
    await ui.render(uiState, parameters, state, action)
  }

  /**
   * Runs an action after all earlier ones. If the action fails, it reports that; otherwise it sends `done`, if there is one.
   */
  const inTurn = (action, done) => {
    queue = queue.then(action).then(
      () => done && send(done),
      (error) => send({ type: "failed", message: textOf(error) }),
    )
  }

  addEventListener("message", ({ data, source }) => {
    // Without a sandbox, this code would run with the rights of the page's origin, and any page could put it in a frame.
    if (source !== parent || self.origin !== "null") return
    if (data.type === "show") {
      last = data
      inTurn(() => show(data), { type: "drawn" })
    } else if (data.type === "start") inTurn(() => start(data.code))
  })
}
