import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitepress"
import { guide } from "../guide.ts"
import { root } from "../stage.ts"

/** Returns the title of a page of `docs/`: its first heading. */
const headingOf = (page: string): string =>
  /^# (.*)$/m.exec(readFileSync(join(root, `docs/${page}.md`), "utf8"))?.[1] ?? page

const inGuide = new Set(guide.flatMap(({ pages }) => Object.keys(pages)))

const algorithms = readdirSync(join(root, "docs/algorithms"))
  .filter((file) => file.endsWith(".md"))
  .map((file) => `algorithms/${file.slice(0, -".md".length)}`)
  .filter((page) => !inGuide.has(page))

const topics = guide.map(({ title, pages }) => ({
  text: title,
  collapsed: false,
  items: Object.entries(pages).map(([page, text]) => ({ text, link: `/${page}` })),
}))

export default defineConfig({
  title: "effect-rl",
  description: "Reinforcement learning and language-model agents in TypeScript, as pure Effect programs.",
  srcDir: ".pages",
  outDir: "dist",
  lastUpdated: false,
  // The address of the site's folder, if it is not the root of its server.
  base: process.env.SITE_BASE ?? "/",
  // VitePress knows pages only: the reference and the plain files are no pages.
  ignoreDeadLinks: [/^\/api\//, /^\/source\//],
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Start", link: "/start" },
      { text: "Algorithms", link: "/algorithms" },
      { text: "Recipes", link: "/recipes" },
      { text: "Reference", link: "/api/index.html", target: "_blank" },
    ],
    sidebar: [
      { text: "Start", link: "/start" },
      ...topics.slice(0, 2),
      {
        text: "Algorithms",
        collapsed: true,
        items: [
          { text: "Overview", link: "/algorithms" },
          ...algorithms.map((page) => ({ text: headingOf(page), link: `/${page}` })),
        ],
      },
      ...topics.slice(2),
      { text: "Examples", link: "/examples" },
      { text: "Security", link: "/security" },
      { text: "Contribute", link: "/contributing" },
    ],
  },
})
