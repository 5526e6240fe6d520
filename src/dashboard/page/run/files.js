/** Makes the section of a run's page with its files. Folders with several files are collapsed at first. */
import { fileAddress } from "../data.js"
import { el } from "../parts/dom.js"
import { bytes, counted } from "../parts/format.js"

/** Returns the folder under which a file is listed. Each checkpoint and each step has a folder of its own. */
const folderOf = ({ path }) => /^((?:checkpoints|steps)\/[^/]+)\//.exec(path)?.[1] ?? /^([^/]+)\//.exec(path)?.[1] ?? ""

export const makeFiles = (run) => {
  const body = el("div.scroll", { tabindex: "0", role: "group", "aria-label": "Files" })
  const note = el("p.quiet.hint", { hidden: true })

  const list = (files) =>
    el(
      "ul.fileList",
      files.map(({ path, size }) =>
        el(
          "li",
          el("a", { href: fileAddress(run, path), download: path.split("/").at(-1) }, path),
          el("span.quiet", ` ${bytes(size)}`),
        ),
      ),
    )

  const folded = ([folder, files]) => {
    const size = files.reduce((sum, one) => sum + one.size, 0)
    const count = ` ${counted(files.length, "file")}, ${bytes(size)}`
    const summary = el("summary", folder, el("span.quiet", count))
    return el("details", { id: `folder-${folder}` }, summary, list(files))
  }

  return {
    element: el("section.card", el("h2", "Files and checkpoints"), body, note),
    show: ({ files, leftOut = 0 }) => {
      note.hidden = leftOut === 0
      note.textContent = `This export has no checkpoints (${counted(leftOut, "file")}); “--checkpoints” adds them.`
      const open = new Set([...body.querySelectorAll("details[open]")].map(({ id }) => id))
      const folders = Map.groupBy(files, folderOf)
      const [many, few] = [[...folders].filter(([folder, some]) => folder !== "" && some.length > 1), new Set()]
      for (const [folder, some] of folders) if (folder === "" || some.length === 1) for (const one of some) few.add(one)
      const others = many.sort(([a], [b]) => a.localeCompare(b))
      body.replaceChildren(list(files.filter((one) => few.has(one))), ...others.map(folded))
      for (const id of open) document.getElementById(id)?.setAttribute("open", "")
    },
  }
}
