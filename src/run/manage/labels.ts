/**
 * Defines the labels of a run: what its owner noted about it. They are in one small file, `labels.json`, which neither the run
 * nor a resume reads, so labels can be changed at any time. These are pure functions, which the page of `effect ui` loads, too.
 *
 * @example
 * ```ts
 * changeLabels({}, { addTags: ["paper"], title: "Baseline" }) // { labels: { title: "Baseline", tags: ["paper"] } }
 * changeLabels({}, { addTags: ["two words"] }) // { problem: 'tag: expected …, found "two words"' }
 * ```
 */

/** The labels of a run. A label that is left out was never set, or was removed. */
export interface RunLabels {
  /** The name that lists show in place of the run's own. The folder keeps its name, so that every path stays valid. */
  readonly title?: string
  readonly note?: string
  readonly tags?: ReadonlyArray<string>
  /** Whether lists leave the run out. */
  readonly archived?: boolean
}

/** A change of labels. What it leaves out stays; an empty title or note removes the label. */
export interface LabelChange {
  readonly title?: string
  readonly note?: string
  readonly addTags?: ReadonlyArray<string>
  readonly removeTags?: ReadonlyArray<string>
  readonly archived?: boolean
}

/** The largest numbers of characters of each label, and of tags. */
export const most = { title: 120, note: 20_000, tag: 64, tags: 32 } as const

/** The largest `labels.json`, in bytes: all labels at their largest, with each character as an escape of six bytes. */
export const mostLabelBytes = 6 * (most.title + most.note + most.tags * most.tag) + 1024

const hasControls = (text: string): boolean => /\p{Cc}/u.test(text)

export const isTitle = (text: string): boolean =>
  text.trim() !== "" && text.length <= most.title && text === text.trim() && !hasControls(text)

/** Tells whether a note can be kept: control characters other than line feeds and tabs could move the cursor of a terminal. */
export const isNote = (text: string): boolean =>
  text.length <= most.note && !hasControls(text.replaceAll(/[\n\t]/g, ""))

/** Tells whether a text is a tag: one word without the characters that have a meaning in filters. */
export const isTag = (text: string): boolean => text.length <= most.tag && /^[^\s\p{Cc}"',=<>!]+$/u.test(text)

const found = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)

/** Returns the labels after a change, or the reason why the change is refused. */
export const changeLabels = (
  labels: RunLabels,
  { title, note, addTags = [], removeTags = [], archived }: LabelChange,
): { readonly labels: RunLabels } | { readonly problem: string } => {
  const newTitle = title?.trim() ?? labels.title ?? ""
  if (newTitle !== "" && !isTitle(newTitle))
    return { problem: `title: expected one line of at most ${most.title} characters, found ${found(newTitle)}` }
  const newNote = (note ?? labels.note ?? "").replaceAll("\r\n", "\n").trimEnd()
  if (!isNote(newNote))
    return { problem: `note: expected at most ${most.note} characters of text, found ${newNote.length}` }
  const wrong = addTags.find((tag) => !isTag(tag))
  if (wrong !== undefined)
    return {
      problem: `tag: expected a word of at most ${most.tag} characters without quotes and , = < > !, found ${found(wrong)}`,
    }
  const tags = [...new Set([...(labels.tags ?? []), ...addTags])].filter((tag) => !removeTags.includes(tag)).sort()
  if (tags.length > most.tags) return { problem: `tags: expected at most ${most.tags} for a run, found ${tags.length}` }
  return {
    labels: {
      ...(newTitle === "" ? {} : { title: newTitle }),
      ...(newNote === "" ? {} : { note: newNote }),
      ...(tags.length === 0 ? {} : { tags }),
      ...((archived ?? labels.archived) === true ? { archived: true } : {}),
    },
  }
}
