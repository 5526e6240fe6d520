/** Changes the text of a ui module (an ES module that renders an env, see `Ui`) without evaluating it. */

const names = ["init", "render", "episode_init", "render_multi", "episode_init_multi"] as const
type Name = (typeof names)[number]

/** Tells whether a text exports `init` and `render`. */
export const isModule = (text: string): boolean => {
  const exported = new Set(exportsOf(text).map(({ name }) => name))
  return exported.has("init") && exported.has("render")
}

/** Turns a module into a script whose exports are global. */
export const classic = (esm: string): string => {
  const exports = exportsOf(esm)
  const list = exports.map(({ name }) => name).join(", ")
  return `var { ${list} } = ${expression(esm, exports)}\n`
}

interface Changes {
  /** A JavaScript expression of `state` for the state to draw. */
  readonly state?: string
  /** A JavaScript expression of `action` for the action to show. */
  readonly action?: string
}

/** Returns a module for a wrapped env: it passes the wrapper's state and action, changed by expressions, to `esm`. */
export const adapted = (esm: string, { state = "state", action = "action" }: Changes): string => {
  const exports = exportsOf(esm)
  const forwarded = exports.map(({ name }) => {
    if (name === "render") {
      return `export const render = (ui_state, parameters, state, action) =>\n  inner.render(ui_state, parameters, ${state}, ${action})`
    }
    if (name === "render_multi") {
      const of = (all: string, one: string) => `${all}.map((${one === action ? "action" : "state"}) => ${one})`
      return `export const render_multi = (ui_state, parameters, states, actions) =>\n  inner.render_multi(ui_state, parameters, ${of("states", state)}, ${of("actions", action)})`
    }
    return `export const ${name} = inner.${name}`
  })
  return `const inner = ${expression(esm, exports)}\n${forwarded.join("\n")}\n`
}

interface Export {
  readonly name: Name
  /** The name within the module. */
  readonly local: string
}

const isName = (text: string): text is Name => names.some((name) => name === text)

const declared = /^export\s+(?=(?:async\s+)?(?:function\s*\*?|const|let|var|class)\s*([\w$]+))/gm
const listed = /^export\s*\{([^}]*)\}\s*;?[^\S\n]*$/gm

const exportsOf = (esm: string): ReadonlyArray<Export> => {
  const declarations = [...esm.matchAll(declared)].map(([, local]) => ({ name: local, local }))
  const lists = [...esm.matchAll(listed)]
    .flatMap(([, list]) => list.split(","))
    .map((item) => item.trim().split(/\s+as\s+/))
    .map(([local, name = local]) => ({ name, local }))
  return [...declarations, ...lists].flatMap(({ name, local }) => (isName(name) ? [{ name, local }] : []))
}

/**
 * Turns a module into an expression of an object with its exports. A module that imports others loads later, so then
 * each function returns a promise of its result.
 */
const expression = (esm: string, exports: ReadonlyArray<Export>): string => {
  const body = esm.replace(declared, "").replace(listed, "").trimEnd()
  if (/^\s*(?:import|export)\b/m.test(body)) {
    const later = exports.map(({ name }) => `${name}: async (...all) => (await module).${name}(...all)`)
    return `((module) => ({ ${later.join(", ")} }))(\n  import("data:text/javascript," + encodeURIComponent(${JSON.stringify(esm)})),\n)`
  }
  const object = exports.map(({ name, local }) => (name === local ? name : `${name}: ${local}`)).join(", ")
  return `(() => {\n${body}\nreturn { ${object} }\n})()`
}
