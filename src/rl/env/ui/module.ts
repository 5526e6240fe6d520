/**
 * Checks and rewrites the text of a ui module, an ES module that renders an env in a browser (see `Ui`). It reads the
 * text by patterns and never runs it. `Env.make`, wrappers and `Ui` use it.
 */

/** The functions that a viewer may call; the module's other exports are ignored. */
const names = ["init", "render", "episode_init", "render_multi", "episode_init_multi"] as const
type Name = (typeof names)[number]

/** Tells whether a text exports `init` and `render`. */
export const isModule = (text: string): boolean => {
  const exported = new Set(exportsOf(text).map(({ name }) => name))
  return exported.has("init") && exported.has("render")
}

/** Returns the text of a classic script, which defines the module's exports as global variables. */
export const classic = (esm: string): string => {
  const exports = exportsOf(esm)
  const list = exports.map(({ name }) => name).join(", ")
  return `var { ${list} } = ${expression(esm, exports)}\n`
}

interface Changes {
  /** A JavaScript expression that computes the inner env's state from `state`. Default: `state` itself. */
  readonly state?: string
  /** A JavaScript expression that computes the inner env's action from `action`. Default: `action` itself. */
  readonly action?: string
}

/** Returns a ui module for a wrapped env: it computes the inner env's state and action, and renders them by `esm`. */
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
  /** The name within the module, which differs from `name` after `export { local as name }`. */
  readonly local: string
}

const isName = (text: string): text is Name => names.some((name) => name === text)

// These patterns match `export const name …` (also functions and classes), and `export { name, local as name }`.
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
 * Returns a JavaScript expression whose value is an object with the module's exports. A module with imports can only be
 * loaded asynchronously, so then each function of the object returns a promise of its result.
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
