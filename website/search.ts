/** Asks the search of the built site what people ask it, with the options of its search box. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import MiniSearch from "minisearch"

/** Words that newcomers search for, and a page that must be among the first ten results. */
const wanted: Readonly<Record<string, string>> = {
  "vercel ai sdk": "/agents/bring-your-agent.html",
  significance: "/runs.html",
  "Ppo.make": "/algorithms/ppo.html",
  resume: "/command.html",
  bun: "/install.html",
}

/** Fails if a search does not find its page. `site` is the folder of the built site, and `base` its address on a server. */
export const checkSearch = async (site: string, base: string): Promise<void> => {
  const chunks = join(site, "assets/chunks")
  const file = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndex"))
  if (file === undefined) throw new Error(`${chunks}: expected the index of the search`)
  const { default: json } = await import(pathToFileURL(join(chunks, file)).href)
  const index = MiniSearch.loadJSON(json, {
    fields: ["title", "titles", "text"],
    searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } },
  })
  for (const [words, page] of Object.entries(wanted)) {
    const pages = index.search(words).map(({ id }) => String(id).replace(/#.*$/, ""))
    if (!pages.slice(0, 10).includes(`${base.replace(/\/$/, "")}${page}`)) {
      throw new Error(`the search for "${words}" does not find ${page} but ${pages.slice(0, 10).join(", ")}`)
    }
  }
}
