package press

import (
	"context"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

const (
	// DefaultFooter is what stands below a page whose user does not say it.
	DefaultFooter = "set by the press"
	// Unprintable is the text that no page may have.
	Unprintable = "unprintable"
)

// Default is the webhook that fills in what users leave out.
func Default() *admission.Webhook {
	return webhookOf(func(request admission.Request, page *pressv1.Page) admission.Response {
		if page.Spec.Footer != "" {
			return admission.Allowed("")
		}
		page.Spec.Footer = DefaultFooter
		filled, err := json.Marshal(page)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, filled)
	})
}

// Admit is the webhook that says which pages are printed.
func Admit() *admission.Webhook {
	return webhookOf(func(_ admission.Request, page *pressv1.Page) admission.Response {
		if page.Spec.Text == Unprintable {
			return admission.Denied("the press cannot print this text")
		}
		return admission.Allowed("")
	})
}

func webhookOf(answer func(admission.Request, *pressv1.Page) admission.Response) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		page := &pressv1.Page{}
		if err := json.Unmarshal(request.Object.Raw, page); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return answer(request, page)
	})}
}
