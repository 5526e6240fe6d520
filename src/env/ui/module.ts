/** What can be done with the text of a ui module without running it. */

const names = ["init", "render", "episode_init", "render_multi", "episode_init_multi"] as const
type Name = (typeof names)[number]

/** Whether a text looks like a module that draws: it exports `init` and `render`. */
export const isModule = (text: string): boolean => {
  const exported = new Set(exportsOf(text).map(({ name }) => name))
  return exported.has("init") && exported.has("render")
}

/** A module as a script: what it exports becomes global. */
export const classic = (esm: string): string => {
  const found = exportsOf(esm)
  const known = found.map(({ name }) => name).join(", ")
  return `var { ${known} } = ${expression(esm, found)}\n`
}

export interface Changes {
  /** JavaScript for what is drawn, of `state`. */
  readonly state?: string
  /** JavaScript for the action shown, of `action`. */
  readonly action?: string
}

/** The module of an env that another is made of, for the states or the actions of the other. */
export const adapted = (esm: string, { state = "state", action = "action" }: Changes): string => {
  const found = exportsOf(esm)
  const forwarded = found.map(({ name }) => {
    if (name === "render") {
      return `export const render = (ui_state, parameters, state, action) =>\n  inner.render(ui_state, parameters, ${state}, ${action})`
    }
    if (name === "render_multi") {
      const of = (all: string, one: string) => `${all}.map((${one === action ? "action" : "state"}) => ${one})`
      return `export const render_multi = (ui_state, parameters, states, actions) =>\n  inner.render_multi(ui_state, parameters, ${of("states", state)}, ${of("actions", action)})`
    }
    return `export const ${name} = inner.${name}`
  })
  return `const inner = ${expression(esm, found)}\n${forwarded.join("\n")}\n`
}

interface Export {
  readonly name: Name
  /** What the module calls it. */
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
 * A module as an expression of an object that holds what it exports. One that imports others can't be had at once, so
 * there each function is a promise of its result.
 */
const expression = (esm: string, found: ReadonlyArray<Export>): string => {
  const body = esm.replace(declared, "").replace(listed, "").trimEnd()
  if (/^\s*(?:import|export)\b/m.test(body)) {
    const later = found.map(({ name }) => `${name}: async (...all) => (await module).${name}(...all)`)
    return `((module) => ({ ${later.join(", ")} }))(\n  import("data:text/javascript," + encodeURIComponent(${JSON.stringify(esm)})),\n)`
  }
  const object = found.map(({ name, local }) => (name === local ? name : `${name}: ${local}`)).join(", ")
  return `(() => {\n${body}\nreturn { ${object} }\n})()`
}
