/** An error boundary: a fault in one place of the page leaves the others as they are. */

import { Component, type ReactNode } from "react";
import { explain } from "../../api/client";
import { queryClient } from "../../api/queries";
import { Failure } from "./Page";

interface Props {
  place: string; // going to another place tries again
  isPart?: boolean; // of a page that has a header
  children: ReactNode;
}

export class Boundary extends Component<Props, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidCatch() {
    // An answer that a view cannot show is not kept, so that the next try asks the server again.
    setTimeout(() => queryClient.removeQueries({ type: "inactive" }));
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error !== null && before.place !== this.props.place) this.setState({ error: null });
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Failure
        title="This part of the page has an error"
        text={`It could not be shown: ${explain(error)}`}
        retry={() => this.setState({ error: null })}
        isPart={this.props.isPart ?? false}
      >
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </Failure>
    );
  }
}
