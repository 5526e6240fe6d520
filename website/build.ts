/**
 * `npm ci && npm run build` in this folder builds the documentation as a site: the guides from `docs/`, and the reference of
 * the public names from the comments in `src/`. The site is in `website/dist`, plain files for any web server. It fails
 * if a link leads nowhere, or if the search does not find what newcomers look for.
 */
import { join } from "node:path"
import { Application } from "typedoc"
import { build } from "vitepress"
import { checkSearch } from "./search.ts"
import { root, stage } from "./stage.ts"

const pages = join(root, "website/.pages")
stage(pages)

const reference = await Application.bootstrap({
  name: "effect-rl",
  tsconfig: join(root, "tsconfig.json"),
  entryPoints: ["index", "node", "web"].map((name) => join(root, `src/${name}.ts`)),
  readme: "none",
  excludeExternals: true,
  excludePrivate: true,
  disableSources: true,
  // The project's own compiler, a newer one, has checked the types.
  skipErrorChecking: true,
  validation: false,
  logLevel: "Error",
})
const project = await reference.convert()
if (project === undefined || reference.logger.hasErrors()) throw new Error("The reference could not be made.")
await reference.generateDocs(project, join(pages, "public/api"))

await build(join(root, "website"))
await checkSearch(join(root, "website/dist"), process.env.SITE_BASE ?? "/")
