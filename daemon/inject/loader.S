// What a thread of another process runs: first one of its own threads, which starts a new one, then
// the new one, which loads the agent. Position-independent; the numbers are offsets in
// AttachRequest (formats/patch/attach_request.h).
#if defined(__x86_64__) && defined(__linux__)

#define PTHREAD_SELF 8
#define PTHREAD_DETACH 16
#define DLOPEN 24
#define DLSYM 32
#define DLERROR 40
#define RETURNED 56
#define RESULT 64
#define STATE 72
#define ENTRY 112
#define MESSAGE 144
#define LIBRARY 656
#define LAST_OF_MESSAGE 511
#define STATE_FAILED 5
// RTLD_NOW | RTLD_NODELETE
#define OPEN_FLAGS 0x1002

	.section .rodata
	.balign 16
	.globl collect_loader_begin
	.hidden collect_loader_begin
	.globl collect_loader_thread
	.hidden collect_loader_thread
	.globl collect_loader_end
	.hidden collect_loader_end

// The borrowed thread: arguments of pthread_create are in their registers, its address in rax, the
// request in r12. It waits here to be given back.
collect_loader_begin:
	call	*%rax
	movq	%rax, RESULT(%r12)
	movq	$1, RETURNED(%r12)
1:	pause
	jmp	1b

// The new thread: void* (*)(void* request).
collect_loader_thread:
	pushq	%rbx
	movq	%rdi, %rbx
	call	*PTHREAD_SELF(%rbx)
	movq	%rax, %rdi
	call	*PTHREAD_DETACH(%rbx)
	leaq	LIBRARY(%rbx), %rdi
	movl	$OPEN_FLAGS, %esi
	call	*DLOPEN(%rbx)
	testq	%rax, %rax
	jz	2f
	movq	%rax, %rdi
	leaq	ENTRY(%rbx), %rsi
	call	*DLSYM(%rbx)
	testq	%rax, %rax
	jz	2f
	movq	%rbx, %rdi
	call	*%rax
	jmp	5f
2:	call	*DLERROR(%rbx)
	xorl	%ecx, %ecx
	testq	%rax, %rax
	jz	4f
3:	movb	(%rax,%rcx), %dl
	movb	%dl, MESSAGE(%rbx,%rcx)
	testb	%dl, %dl
	jz	4f
	incq	%rcx
	cmpq	$LAST_OF_MESSAGE, %rcx
	jb	3b
4:	movl	$STATE_FAILED, STATE(%rbx)
5:	xorl	%eax, %eax
	popq	%rbx
	ret
collect_loader_end:

	.section .note.GNU-stack,"",@progbits
#endif
