/** Names of models, as agents and settings have them. */

export const DEMO = "demo";

/** Return whether a model was removed since it was chosen; `names` are those that there are. PROVIDER:MODEL always is. */
export function isGone(model: string, names: readonly string[]): boolean {
  return model !== DEMO && !model.includes(":") && !names.includes(model);
}
