/** Writes docs/scores.md, docs/scores/runs.md and docs/scores/pictures from the results, and lists the files that are there. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { pagesOf, picturesOf } from "./page.ts"
import { readResults } from "./ScoreResult.ts"

/** The folder of the page, unless `--docs` names another one. */
export const docsFolder = fileURLToPath(new URL("../../docs/", import.meta.url))

/** The files of the table, by the folder of the page. */
export const filesIn = (docs: string) => ({
  results: join(docs, "scores/results"),
  pictures: join(docs, "scores/pictures"),
  page: join(docs, "scores.md"),
  runs: join(docs, "scores/runs.md"),
})

export const readPage = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "")

/** Writes the page and the list of trainings. */
export const writePage = (docs: string): void => {
  const files = filesIn(docs)
  const texts = pagesOf(readResults(files.results))
  mkdirSync(dirname(files.runs), { recursive: true })
  writeFileSync(files.page, texts.page)
  writeFileSync(files.runs, texts.runs)
}

/** Draws all pictures, which takes some seconds; removes those of rows that have no results any more. */
export const writePictures = (docs: string): void => {
  const files = filesIn(docs)
  const pictures = picturesOf(readResults(files.results))
  mkdirSync(files.pictures, { recursive: true })
  for (const [name, drawing] of pictures) writeFileSync(join(files.pictures, name), drawing)
  for (const name of readdirSync(files.pictures)) if (!pictures.has(name)) rmSync(join(files.pictures, name))
}
